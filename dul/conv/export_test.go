package conv

// The two forms of Convolve, for the tests that compare them.
var (
	Native     = native
	ByProducts = byProducts
)
