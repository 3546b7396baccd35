package schema

import (
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Domain names the state machine, and so the actor, that owns a syscall.
type Domain string

// Kernel is the domain of the syscalls about the kernel itself.
const Kernel Domain = "kernel"

// Grant says who may call a syscall when nobody granted it.
type Grant uint8

const (
	// ByCapability: a token that names the syscall is needed (CAP 2).
	ByCapability Grant = iota
	// Everyone: no token is needed (PROTOCOL 5).
	Everyone
	// OperatorOnly: no token is enough.
	OperatorOnly
	// ByName: a token is needed that names the syscall itself; a pattern of its domain, or of all, does not.
	ByName
)

// Syscall is one row of the syscall table: everything about a syscall but its meaning.
type Syscall struct {
	Type        string
	Code        string // CAP's name, such as SYS_ALLOC, where it has one
	Kind        Kind   // Command or Query
	Domain      Domain
	Grant       Grant
	Description string
	Input       *Type
	Output      *Type
	AliasOf     string // the row is another name of this one, and is not listed
	Alone       bool   // it may take long: no other frame of its connection is under way beside it
	Urgent      bool   // the operator's are taken on a full disk too: their entries may use the journal's reserve
	Internal    bool   // a command of the kernel to itself: nobody can call it
	Outcome     string // the command that ends what the call has done outside the kernel, see EffectEnd; such a call is Alone

	ends bool // it is the Outcome of another row
}

// Ends reports whether the command is the Outcome of other rows: its entries hold the verdicts on their calls.
func (s *Syscall) Ends() bool { return s.ends }

func rows() []Syscall {
	return slices.Concat(capabilityRows(), processRows(), ingestRows(), ipcRows(), resourceRows(), memoryRows(), deltaRows(), auditRows(), clockRows(), cryptoRows(), loginRows(), throttledRows(), bootRows(), httpRows(), netRows(), fileSystemRows(), []Syscall{
		{
			Type: "Syscall.Ping", Kind: KindQuery, Domain: Kernel, Grant: Everyone, Input: TypeOf[PingInput](), Output: TypeOf[PingOutput](),
			Description: "Returns the payload unchanged: shows that the kernel answers.",
		},
		{
			Type: "Syscall.Echo", Kind: KindCommand, Domain: Kernel, Grant: Everyone, Input: TypeOf[EchoInput](), Output: TypeOf[EchoOutput](),
			Description: "Returns the message: shows the way of a command.",
		},
		{
			Type: "Syscall.List", Kind: KindQuery, Domain: Kernel, Grant: Everyone, Input: TypeOf[ListInput](), Output: TypeOf[ListOutput](),
			Description: "Names the syscalls that the caller may call.",
		},
		{
			Type: "Syscall.Describe", Kind: KindQuery, Domain: Kernel, Grant: Everyone, Input: TypeOf[DescribeInput](), Output: TypeOf[DescribeOutput](),
			Description: "Describes a syscall: its kind, what it does, and the JSON Schemas of its data and of its reply's data.",
		},
		{
			Type: "Sys.Describe", Kind: KindQuery, Domain: Kernel, Grant: Everyone, Input: TypeOf[DescribeInput](), Output: TypeOf[DescribeOutput](),
			Description: "The name of Syscall.Describe in EVENT.", AliasOf: "Syscall.Describe",
		},
		{
			Type: CallType, Kind: KindCommand, Domain: Process, Alone: true, Outcome: "Syscall.Called", Input: TypeOf[CallInput](), Output: TypeOf[Value](),
			Description: "Calls a syscall by its name of the older contract, and answers what it answers. A short name needs what the syscall behind it needs, and nothing more; a path needs Syscall.Call.",
		},
		{
			Type: "Syscall.Shutdown", Kind: KindCommand, Domain: Kernel, Grant: OperatorOnly, Urgent: true, Input: TypeOf[ShutdownInput](), Output: TypeOf[SuccessOutput](),
			Description: "Ends the kernel in good order: what was accepted before is finished and answered.",
		},
	})
}

type index struct {
	rows   []Syscall
	byType map[string]*Syscall
}

// table is built once; it never changes.
var table = sync.OnceValue(func() *index {
	list := rows()
	slices.SortFunc(list, func(a, b Syscall) int { return strings.Compare(a.Type, b.Type) })
	x := &index{rows: list, byType: make(map[string]*Syscall, len(list))}
	for i := range list {
		x.byType[list[i].Type] = &list[i]
	}
	for i := range list {
		if end := x.byType[list[i].Outcome]; end != nil {
			end.ends = true
		}
	}
	return x
})

// Syscalls returns the syscall table, sorted by type. It is shared: nobody changes it.
func Syscalls() []Syscall { return table().rows }

// Lookup returns the row of the named syscall.
func Lookup(typ string) (*Syscall, bool) {
	row, ok := table().byType[typ]
	return row, ok
}

// AppendDescription appends what Syscall.Describe answers about s, in the words of dialect d.
func (s *Syscall) AppendDescription(dst []byte, d Dialect) []byte {
	dst = jsontype.AppendString(append(dst, `{"name":`...), s.Type)
	dst = append(dst, `,"`...)
	dst = append(dst, d.names().kind...)
	dst = jsontype.AppendString(append(dst, `":`...), s.Kind.word(d))
	dst = jsontype.AppendString(append(dst, `,"description":`...), s.Description)
	dst = s.Input.AppendJSONSchema(append(dst, `,"input":`...))
	dst = s.Output.AppendJSONSchema(append(dst, `,"output":`...))
	return append(dst, '}')
}
