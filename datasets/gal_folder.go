package datasets

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSplits bounds n_splits.txt, so that a damaged file is told from a real one.
const maxSplits = 1000

// ReadGalFolder reads a regression set in the layout in which Gal & Ghahramani
// published theirs, so that a set of one's own can be used like the built-in
// ones. dir holds
//
//	data.txt             numbers separated by blanks, one example a line
//	index_features.txt   0-based columns of the features, one a line
//	index_target.txt     0-based column of the target
//	n_splits.txt         number of splits
//	index_train_i.txt    0-based rows of split i, one a line
//	index_test_i.txt
//
// Every split must hold each row exactly once. Faults in a file are reported as a
// [*ParseError]. Name and Title of the result are name.
func ReadGalFolder(dir, name string) (*Regression, []Split, error) {
	values, columns, err := readGalTable(dir)
	if err != nil {
		return nil, nil, err
	}
	features, err := readIndices(filepath.Join(dir, "index_features.txt"), columns)
	if err != nil {
		return nil, nil, err
	}
	target, err := readSingle(filepath.Join(dir, "index_target.txt"), columns)
	if err != nil {
		return nil, nil, err
	}
	count, err := readSingle(filepath.Join(dir, "n_splits.txt"), maxSplits)
	if err != nil {
		return nil, nil, err
	}
	r := &Regression{Name: name, Title: name, N: len(values) / columns, D: len(features)}
	for i := range r.N {
		row := values[i*columns : (i+1)*columns]
		for _, j := range features {
			r.X = append(r.X, row[j])
		}
		r.Y = append(r.Y, row[target])
	}
	splits := make([]Split, count)
	for i := range splits {
		if splits[i], err = readGalSplit(dir, i, r.N); err != nil {
			return nil, nil, err
		}
	}
	return r, splits, nil
}

func readGalTable(dir string) (values []float64, columns int, err error) {
	path := filepath.Join(dir, "data.txt")
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("datasets: reading the table: %w", err)
	}
	values, columns, err = parseTable(f, path)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("datasets: closing %s: %w", path, closeErr)
	}
	return values, columns, err
}

// readGalSplit reads split i and checks that it is a partition of n rows. As the
// numbers of each file are distinct, n of them without overlap are a partition.
func readGalSplit(dir string, i, n int) (Split, error) {
	trainFile := filepath.Join(dir, fmt.Sprintf("index_train_%d.txt", i))
	testFile := filepath.Join(dir, fmt.Sprintf("index_test_%d.txt", i))
	train, err := readIndices(trainFile, n)
	if err != nil {
		return Split{}, err
	}
	test, err := readIndices(testFile, n)
	if err != nil {
		return Split{}, err
	}
	inTrain := make([]bool, n)
	for _, row := range train {
		inTrain[row] = true
	}
	for _, row := range test {
		if inTrain[row] {
			return Split{}, &ParseError{File: testFile, Err: fmt.Errorf("%w: row %d is in %s too", ErrDuplicate, row, trainFile)}
		}
	}
	if len(train)+len(test) != n {
		return Split{}, &ParseError{File: testFile, Err: fmt.Errorf("%w: %d, with %d in %s, but the table has %d",
			ErrRowCount, len(test), len(train), trainFile, n)}
	}
	return Split{Train: train, Test: test}, nil
}

func readIndices(path string, n int) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("datasets: reading an index file: %w", err)
	}
	indices, err := parseIndices(f, path, n)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("datasets: closing %s: %w", path, closeErr)
	}
	return indices, err
}

// readSingle reads a file of one whole number in [0, limit).
func readSingle(path string, limit int) (int, error) {
	all, err := readIndices(path, limit)
	if err != nil {
		return 0, err
	}
	if len(all) != 1 {
		return 0, &ParseError{File: path, Err: fmt.Errorf("%w: %d, expected 1", ErrRowCount, len(all))}
	}
	return all[0], nil
}
