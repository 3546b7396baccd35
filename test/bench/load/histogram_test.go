package load_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/promptware-os/pwos/test/bench/load"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []time.Duration{60, 70, 1000, time.Millisecond, time.Hour, 1 << 62} {
		var all []time.Duration
		for range 1000 {
			all = append(all, time.Duration(random.Int64N(int64(scale))))
		}
		slices.Sort(all)
		for _, q := range []float64{0.001, 0.5, 0.99, 1} {
			exact := all[int(q*1000+0.5)-1]
			got := load.Quantile(all, q)
			if got < exact || float64(got) > float64(exact)*1.02+1 {
				t.Errorf("quantile %v of durations below %v is %v, want %v", q, scale, got, exact)
			}
		}
	}
	if got := load.Quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}
