package ops

import "testing"

// The forms for compilers, for the tests that compare them with those for the Go backend.
var (
	PlainSum         = plainSum
	ComputedTriangle = computedTriangle
)

// OnEachProcessor runs a test with the forms for each kind of processor: all are right on every one, if not fast.
func OnEachProcessor(t *testing.T, test func(t *testing.T)) {
	before := processor
	defer func() { processor = before }()
	for _, p := range []struct {
		name string
		kernel
	}{{"avx512", avx512}, {"avx2", avx2}} {
		processor = p.kernel
		t.Run(p.name, test)
	}
}
