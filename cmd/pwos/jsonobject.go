package main

import (
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// object builds a JSON object, member by member.
type object []byte

func (o object) name(name string) object {
	if o == nil {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(schema.AppendString(o, name), ':')
}

func (o object) text(name, value string) object { return schema.AppendString(o.name(name), value) }

func (o object) raw(name string, value []byte) object { return append(o.name(name), value...) }

func (o object) integer(name string, value int64) object {
	return strconv.AppendInt(o.name(name), value, 10)
}

// number writes value rounded to the given digits after the point.
func (o object) number(name string, value float64, digits int) object {
	return strconv.AppendFloat(o.name(name), value, 'f', digits, 64)
}

func (o object) boolean(name string, value bool) object {
	return strconv.AppendBool(o.name(name), value)
}

// close ends the object.
func (o object) close() []byte {
	if o == nil {
		return []byte("{}")
	}
	return append(o, '}')
}
