package examples

import _ "embed"

//go:embed demo/clerk.sh
var clerkScript []byte

//go:embed demo/boss.sh
var bossScript []byte

// Clerk returns demo/clerk.sh: it answers questions, and crashes once.
func Clerk() []byte { return clerkScript }

// Boss returns demo/boss.sh: it asks one, and tries what it may not.
func Boss() []byte { return bossScript }
