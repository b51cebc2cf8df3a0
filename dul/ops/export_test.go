package ops

import "testing"

// The forms for compilers, for the tests that compare them with those for the Go backend.
var (
	PlainSum         = plainSum
	ComputedTriangle = computedTriangle
)

var processors = map[string]kernel{"avx512": avx512, "avx2": avx2}

// OnEachProcessor runs a test with the forms for each kind of processor: all are right on every one, if not fast.
func OnEachProcessor(t *testing.T, test func(t *testing.T)) {
	for name := range processors {
		t.Run(name, func(t *testing.T) {
			UseProcessor(t, name)
			test(t)
		})
	}
}

// UseProcessor takes the forms for one kind of processor until the test ends.
func UseProcessor(t *testing.T, name string) {
	before := processor
	processor = processors[name]
	t.Cleanup(func() { processor = before })
}
