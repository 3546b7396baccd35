// Package budget keeps the budgets of agents (PROTOCOL 10, Budgets) in one ledger, a fold over the
// whole journal.
package budget
