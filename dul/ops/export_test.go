package ops

// The forms for compilers, for the tests that compare them with those for the Go backend.
var (
	PlainSum         = plainSum
	ComputedTriangle = computedTriangle
)
