// Package cluster_test breaks the processes of a cluster while clients use it. The cluster is a kernel with one or two hosts, a bus of
// one or three nodes, and a link that a test can break between any two of them.
//
// hosts_test.go and bus_test.go have the processes, link_test.go what is between them, clients_test.go the load, faults_test.go what
// is broken, oracle_test.go what is checked, and planted_test.go that the checks find something.
package cluster_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
