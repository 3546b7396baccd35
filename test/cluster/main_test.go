// Package cluster_test holds what kernels of a cluster promise each other.
package cluster_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

func TestMain(m *testing.M) { testkernel.Main(m) }
