package datasets

// UCISize is the number of examples, of features and of published splits of a UCI data set by its
// name, known without reading it. It returns an error for a name that is not among UCINames.
func UCISize(name string) (examples, features, splits int, err error) {
	e, err := lookup(name)
	if err != nil {
		return 0, 0, 0, err
	}
	return e.n, e.d, e.splits, nil
}
