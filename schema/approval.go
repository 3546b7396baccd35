package schema

// Approval is the domain of approval questions: rules can require that a person approves a call (PROTOCOL 10, Approvals).
const Approval Domain = "approval"

// The syscalls of this file.
var (
	ApprovalList = NewQuery[ApprovalListInput, ApprovalListOutput](Syscall{
		Type: "Approval.List", Domain: Approval, Grant: OperatorOnly,
		Script:      "scripts/approval.txtar",
		Description: "Lists the questions that calls wait for, and those that were answered, oldest first.",
	})

	ApprovalDecide = NewCommand[ApprovalDecideInput, ApprovalState](Syscall{
		Type: "Approval.Decide", Domain: Approval, Grant: OperatorOnly,
		Script:      "scripts/approval.txtar",
		Description: "Answers a question: the call that it asks about may be made, once or for a time, or is refused until the question expires.",
	})

	ApprovalSubscribe = NewCommand[ApprovalSubscribeInput, SuccessOutput](Syscall{
		Type: "Approval.Subscribe", Domain: Approval, Grant: OperatorOnly,
		Script:      "scripts/approval.txtar",
		Description: "Pushes waiting questions, new questions and answers on this connection until it closes, as events Approval.Requested and Approval.Decided.",
	})

	ApprovalWatch = NewQuestion[ApprovalWatchInput, SuccessOutput](Syscall{
		Type: "Approval.Watch", Domain: Approval,
		Description: "Finds the questions asked or answered since the last push to a subscriber.",
	})

	ApprovalRequested = NewStep[ApprovalRequestedInput, SuccessOutput](Syscall{
		Type: ApprovalHasRequested, Domain: Approval,
		Description: "Asks whether a call may be made.",
	})

	ApprovalUse = NewStep[ApprovalUseInput, SuccessOutput](Syscall{
		Type: "Approval.Use", Domain: Approval,
		Description: "Uses up an approval: its call begins.",
	})
)

// States of an approval.
const (
	ApprovalWaiting  = "waiting"
	ApprovalApproved = "approved"
	ApprovalRefused  = "refused"
	ApprovalUsed     = "used"    // it was approved for one call, which was made
	ApprovalExpired  = "expired" // the question or its approval has expired
)

// Answers to a question.
const (
	Approve = "approve"
	Refuse  = "refuse"
)

// The events of Approval.Subscribe. Their data is an ApprovalState.
const (
	ApprovalHasRequested = "Approval.Requested"
	ApprovalHasDecided   = "Approval.Decided"
)

// ApprovalListInput is the data of Approval.List.
type ApprovalListInput struct {
	State *string `json:"state,omitzero" keep:"always" enum:"waiting approved refused used expired" doc:"Only those in this state. Default: all that are remembered."`
	After *string `json:"after,omitzero" keep:"always" minlen:"1" maxlen:"64" doc:"Only those that were asked after this one: its id."`
}

// ApprovalListOutput is the answer of Approval.List.
type ApprovalListOutput struct {
	Approvals []ApprovalState `json:"approvals" keep:"always" doc:"The questions, oldest first; as many as a line holds."`
	More      int64           `json:"more,omitzero" keep:"always" doc:"How many were left out; call again with after to get them. Absent if there are none."`
}

// ApprovalDecideInput is the data of Approval.Decide.
type ApprovalDecideInput struct {
	ID         string  `json:"id" keep:"always" minlen:"1" maxlen:"64" doc:"The question, as Approval.List names it."`
	Digest     *string `json:"digest,omitzero" keep:"always" minlen:"1" maxlen:"64" doc:"Its digest, as it was shown: a question with another one is not answered."`
	Decision   string  `json:"decision" keep:"always" enum:"approve refuse" doc:"Whether the call may be made."`
	ForSeconds *int64  `json:"for_seconds,omitzero" keep:"always" min:"1" max:"2592000" doc:"With approve: how long the same call may be repeated. Default: it may be made once, until the question expires."`
	Why        *string `json:"why,omitzero" keep:"always" maxlen:"1024" doc:"The reason. The agent sees it when the call is refused."`
}

// ApprovalSubscribeInput is the data of Approval.Subscribe.
type ApprovalSubscribeInput struct{}

// ApprovalWatchInput is the data of the kernel's own Approval.Watch.
type ApprovalWatchInput struct {
	Since  int64 `json:"since" keep:"always" doc:"Number of the last change that was pushed."`
	Before int64 `json:"before" keep:"always" doc:"Number of the last change before the subscription. Of the changes up to it, only open questions are pushed."`
}

// ApprovalRequestedInput is the data of the kernel's own Approval.Requested: a question.
type ApprovalRequestedInput struct {
	ID        string `json:"id" keep:"always" doc:"The question."`
	Rule      string `json:"rule" keep:"always" doc:"The rule that requires an approval."`
	Policy    string `json:"policy" keep:"always" doc:"SHA-256 of the policy files that contain the rule, in hex."`
	PID       int64  `json:"pid" keep:"always" doc:"Process that calls."`
	Agent     string `json:"agent" keep:"always" doc:"Its name."`
	Origin    string `json:"origin" keep:"always" doc:"Origin of the call: which stored data it sees."`
	Type      string `json:"type" keep:"always" doc:"What is called."`
	Data      Value  `json:"data" keep:"always" doc:"The call's data, in the form that the journal keeps if the call succeeds."`
	Exhausted string `json:"exhausted,omitzero" keep:"always" doc:"The kind of budget that the call exceeds, if the rule asks about that."`
	Digest    string `json:"digest" keep:"always" doc:"SHA-256 over caller, type and normalised data in the form of RFC 8785, in hex: what exactly is asked about."`
	Asked     int64  `json:"asked" keep:"always" doc:"When it was asked first, in Unix milliseconds."`
	Expires   int64  `json:"expires" keep:"always" doc:"When the question expires, in Unix milliseconds. After that, the same call raises a new question."`
}

// ApprovalUseInput is the data of the kernel's own Approval.Use.
type ApprovalUseInput struct {
	ID string `json:"id" keep:"always" doc:"The question that was approved."`
}

// ApprovalState is an approval question and its answer.
type ApprovalState struct {
	ApprovalRequestedInput
	State    string           `json:"state" keep:"always" doc:"waiting: not answered yet. approved. refused. used: approved for one call, which was made. expired: not answered in time, or the approval has run out."`
	Until    int64            `json:"until,omitzero" keep:"always" doc:"When a repeatable approval ends, in Unix milliseconds. Absent if the call may be made once."`
	Why      string           `json:"why,omitzero" keep:"always" doc:"The reason that was given with the answer."`
	Decided  *ApprovalDecided `json:"decided,omitzero" keep:"always" doc:"Who answered. Absent while the question is open."`
	Advisory bool             `json:"advisory,omitzero" keep:"always" doc:"The approval does not prove that a person gave it: the kernel does not confine the agent, which could have answered as the operator itself."`
}

// ApprovalDecided describes when, with which key and on which connection a question was answered.
type ApprovalDecided struct {
	At   int64  `json:"at" keep:"always" doc:"When, in Unix milliseconds."`
	Key  string `json:"key,omitzero" keep:"always" doc:"Fingerprint of the key that the connection has shown; absent: it needed none."`
	Via  string `json:"via" keep:"always" doc:"Through which door: socket, inline and so on."`
	Conn string `json:"conn" keep:"always" doc:"On which connection."`
}
