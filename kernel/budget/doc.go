// Package budget keeps what agents may use up (PROTOCOL 10, Budgets): one ledger for all of them, a fold over the whole journal.
package budget
