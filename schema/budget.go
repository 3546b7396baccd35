package schema

// Budget is the domain of budgets (PROTOCOL 10, Budgets).
const Budget Domain = "budget"

// BudgetGrant is the budget of a process and its descendants. Usage of a kind that is not set is charged to the nearest ancestor
// with a budget of that kind, and is unlimited if there is none. Zero allows no usage.
type BudgetGrant struct {
	Calls       *int64   `json:"calls,omitzero" keep:"always" min:"0" max:"9007199254740991" doc:"Calls that are not refused."`
	Fetches     *int64   `json:"fetches,omitzero" keep:"always" min:"0" max:"9007199254740991" doc:"Http.Fetch, and connections and requests of its network."`
	Tokens      *int64   `json:"tokens,omitzero" keep:"always" min:"0" max:"9007199254740991" doc:"Tokens of models behind upstreams, of prompts and of answers."`
	USD         *float64 `json:"usd,omitzero" keep:"always" min:"0" max:"1000000" doc:"What these cost, in US dollars with six decimals at most."`
	WallSeconds *int64   `json:"wall_seconds,omitzero" keep:"always" min:"0" max:"31536000" doc:"Seconds from now on. Of a process and its ancestors the earliest end counts."`
}

// BudgetShowInput is the data of Budget.Show.
type BudgetShowInput struct {
	Target
	TargetPID *int64 `json:"target_pid,omitzero" keep:"always" min:"1" doc:"Only the budgets of this process and of its descendants. Default: the caller, which is all for the operator."`
}

// BudgetShowOutput is the answer of Budget.Show.
type BudgetShowOutput struct {
	Budgets []BudgetState `json:"budgets" keep:"always" doc:"Of processes that live, by ascending PID: 1,000 at most."`
}

// BudgetState is the budget of a process and its remaining part.
type BudgetState struct {
	PID       int64       `json:"pid" keep:"always" doc:"The process."`
	AgentID   string      `json:"agent_id" keep:"always" doc:"Its name."`
	ParentPID int64       `json:"parent_pid" keep:"always" doc:"Process whose budget this one was taken from; 0: the operator's."`
	Calls     *BudgetLine `json:"calls,omitzero" keep:"always" doc:"Calls; absent: it draws on an ancestor's, or they are not limited."`
	Fetches   *BudgetLine `json:"fetches,omitzero" keep:"always" doc:"Fetches, in the same way."`
	Tokens    *BudgetLine `json:"tokens,omitzero" keep:"always" doc:"Tokens, in the same way."`
	USD       *BudgetLine `json:"usd,omitzero" keep:"always" doc:"US dollars, in the same way."`
	Deadline  *int64      `json:"deadline,omitzero" keep:"always" doc:"When its time ends, in Unix milliseconds; absent: never."`
}

// BudgetLine is the state of one kind. Given is the sum of the others.
type BudgetLine struct {
	Given    Decimal `json:"given" keep:"always" doc:"What the process was given."`
	Spent    Decimal `json:"spent" keep:"always" doc:"What it has used up, with its children that have ended and those that have no budget of their own."`
	Reserved Decimal `json:"reserved" keep:"always" doc:"Reserved for calls in flight."`
	Below    Decimal `json:"below" keep:"always" doc:"What was given on to children that live."`
	Withheld Decimal `json:"withheld,omitzero" keep:"always" doc:"Returned by children after its grant was reduced. It cannot be spent, and goes back to the ancestor when the process ends."`
	Left     Decimal `json:"left" keep:"always" doc:"What is left. Tokens and dollars may be below zero, since requests cost what they cost."`
}

// The syscalls of this file.
var (
	BudgetShow = NewQuery[BudgetShowInput, BudgetShowOutput](Syscall{
		Type: "Budget.Show", Domain: Budget,
		Script:      "scripts/budget.txtar",
		Description: "Shows what the caller, and the processes below it, have left of their budgets; the operator is shown all. It costs nothing.",
	})
)
