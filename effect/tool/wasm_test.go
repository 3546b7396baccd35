package tool_test

import "encoding/binary"

// Function indexes in the test modules: their imports, then their own function.
const (
	fdWrite = iota
	fdRead
	procExit
	randomGet
	clockTime
	pollOneoff
	start // _start
)

// module assembles a WASI module with a memory of the given number of pages that begins with data, and with a function _start that has
// the given body and two i32 locals.
func module(pages uint32, data []byte, body ...[]byte) []byte {
	return assemble(pages, data, nil, body...)
}

// assemble is module with an optional table section.
func assemble(pages uint32, data, tables []byte, body ...[]byte) []byte {
	const i32, i64 = 0x7f, 0x7e
	types := vector(
		[]byte{0x60, 0, 0}, // 0: nothing
		[]byte{0x60, 4, i32, i32, i32, i32, 1, i32},
		[]byte{0x60, 1, i32, 0},
		[]byte{0x60, 2, i32, i32, 1, i32},
		[]byte{0x60, 3, i32, i64, i32, 1, i32},
	)
	imported := func(name string, typ byte) []byte {
		return join(text("wasi_snapshot_preview1"), text(name), []byte{0, typ})
	}
	imports := vector(
		imported("fd_write", 1), imported("fd_read", 1), imported("proc_exit", 2), imported("random_get", 3), imported("clock_time_get", 4),
		imported("poll_oneoff", 1),
	)
	code := join([]byte{1, 2, i32}, join(body...), []byte{0x0b}) // two locals, …, end
	out := join([]byte("\x00asm\x01\x00\x00\x00"), section(1, types), section(2, imports), section(3, vector([]byte{0})))
	if tables != nil {
		out = join(out, section(4, tables))
	}
	out = join(
		out,
		section(5, join([]byte{1, 0}, leb(pages))),
		section(7, vector(join(text("memory"), []byte{2, 0}), join(text("_start"), []byte{0, start}))),
		section(10, vector(join(leb(uint32(len(code))), code))),
	)
	if data != nil {
		out = join(out, section(11, vector(join([]byte{0}, constant(0), []byte{0x0b}, leb(uint32(len(data))), data))))
	}
	return out
}

func section(id byte, content []byte) []byte {
	return join([]byte{id}, leb(uint32(len(content))), content)
}

func vector(items ...[]byte) []byte { return join(leb(uint32(len(items))), join(items...)) }
func text(s string) []byte          { return join(leb(uint32(len(s))), []byte(s)) }
func leb(n uint32) []byte           { return binary.AppendUvarint(nil, uint64(n)) }

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// constant returns the instruction i32.const n.
func constant(n uint32) []byte {
	out := []byte{0x41}
	for n > 0x3f {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

func call(f byte) []byte { return []byte{0x10, f} }
func loop(body ...[]byte) []byte {
	return join([]byte{0x03, 0x40}, join(body...), []byte{0x0c, 0, 0x0b})
}
func load(at uint32) []byte            { return join(constant(at), []byte{0x28, 2, 0}) }
func loadByte(at uint32) []byte        { return join(constant(at), []byte{0x2d, 0, 0}) }
func store(at uint32, v []byte) []byte { return join(constant(at), v, []byte{0x36, 2, 0}) }

// drop is the instruction drop, which discards the result of an import.
var drop = []byte{0x1a}

// transfer calls fd_read or fd_write with one iovec at address 0.
func transfer(f byte, fd uint32) []byte {
	return join(constant(fd), constant(0), constant(1), constant(8), call(f), drop)
}

// printing returns a module that writes its data.
func printing(data string) []byte {
	vec := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 16), uint32(len(data)))
	return module(1, append(append(vec, make([]byte, 8)...), data...), transfer(fdWrite, 1))
}

// echo returns a module that writes its input.
func echo() []byte {
	const buffer, size = 1024, 4096
	return module(1, nil, []byte{0x02, 0x40}, loop( // block
		store(0, constant(buffer)), store(4, constant(size)), transfer(fdRead, 0),
		load(8), []byte{0x45, 0x0d, 1}, // eqz, br_if out of the block
		store(4, load(8)), transfer(fdWrite, 1),
	), []byte{0x0b})
}

// flood returns a module that writes to a descriptor forever.
func flood(fd uint32) []byte {
	return module(1, nil, store(0, constant(1024)), store(4, constant(32<<10)), loop(transfer(fdWrite, fd)))
}

// spin returns a module that loops forever.
func spin() []byte { return module(1, nil, loop()) }

// recurse returns a module that calls itself forever.
func recurse() []byte { return module(1, nil, call(start)) }

// grow returns a module that grows its memory until that fails, and exits with the number of its pages.
func grow() []byte {
	return module(
		1, nil, []byte{0x03, 0x40}, constant(1), []byte{0x40, 0}, // loop: memory.grow 1
		[]byte{0x41, 0x7f, 0x47, 0x0d, 0, 0x0b}, // -1, ne, br_if again
		[]byte{0x3f, 0}, call(procExit),         // memory.size
	)
}

// chance returns a module that exits with a random byte.
func chance() []byte {
	return module(1, nil, constant(64), constant(1), call(randomGet), drop, loadByte(64), call(procExit))
}

// wait returns a module that sleeps for an hour.
func wait() []byte {
	subscription := make([]byte, 48)
	subscription[16] = 1 // the monotonic clock
	binary.LittleEndian.PutUint64(subscription[24:], 3_600_000_000_000)
	return module(1, subscription, constant(0), constant(64), constant(1), constant(128), call(pollOneoff), drop)
}

// calendar returns a module that exits with 1 if the wall clock is not 0.
func calendar() []byte {
	return module(
		1, nil, constant(0), []byte{0x42, 0}, constant(64), call(clockTime), drop,
		load(64), load(68), []byte{0x72, 0x45, 0x45}, call(procExit), // or, not zero
	)
}
