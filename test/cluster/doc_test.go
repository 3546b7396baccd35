// Package cluster_test breaks the processes of a cluster while clients use it. The cluster is a kernel with one or two
// hosts, a bus of one or three nodes, and a link that a test can break between any two of them.
//
// hosts_test.go and bus_test.go start the processes, link_test.go connects them, clients_test.go has the load,
// faults_test.go what is broken, oracle_test.go what is checked, and planted_test.go shows that the checks find faults.
package cluster_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
