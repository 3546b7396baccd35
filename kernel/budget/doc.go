// Package budget keeps the budgets of agents (PROTOCOL 10, Budgets): one ledger for all of them, a fold over the
// whole journal.
package budget
