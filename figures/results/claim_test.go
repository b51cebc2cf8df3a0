package results

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"densityuncertainty/environment/must"
)

// split is one of several experiments.
func split(i int) Experiment {
	e := regression()
	e.Split = i
	return e
}

// What one has claimed another does not get, until it is released, and then nothing is left of it.
func TestClaim(t *testing.T) {
	list := []Experiment{split(0), split(1), split(2)}
	dir := t.TempDir()
	one, another := must.Get(OpenStore(dir))(t), must.Get(OpenStore(dir))(t)
	claim := func(s *Store, list []Experiment, want ...Experiment) (release func()) {
		t.Helper()
		free, done, err := s.Claim(list)
		if err != nil || !slices.EqualFunc(free, want, func(a, b Experiment) bool { return a.ID() == b.ID() }) {
			t.Fatalf("got %v, %v; want %v", free, err, want)
		}
		return func() { t.Helper(); must.Do(t, done()) }
	}
	first := claim(one, list[1:2], list[1])
	second := claim(another, list, list[0], list[2])
	claim(one, list)()
	first()
	claim(one, list, list[1])()
	second()
	claim(another, list, list...)()
	if left := must.Get(os.ReadDir(filepath.Join(dir, claimsName)))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Of many at once one has an experiment at any time, though files are made and removed all the while.
func TestClaimAmongMany(t *testing.T) {
	store := must.Get(OpenStore(t.TempDir()))(t)
	list := []Experiment{split(0)}
	var having, had atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				free, release, err := store.Claim(list)
				if err != nil {
					t.Error(err)
					return
				}
				if len(free) > 0 {
					had.Add(1)
					if n := having.Add(1); n != 1 {
						t.Errorf("%d have it", n)
					}
					having.Add(-1)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if had.Load() < 300 {
		t.Errorf("claimed %d times", had.Load())
	}
}

func TestClaimErrors(t *testing.T) {
	dir := t.TempDir()
	store := must.Get(OpenStore(dir))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, claimsName), nil, 0o600))
	if _, _, err := store.Claim(nil); err == nil || !strings.Contains(err.Error(), "making the folder for what is running: ") {
		t.Errorf("a file in the place of the folder: %v", err)
	}
	must.Do(t, os.Remove(filepath.Join(dir, claimsName)))
	e := split(0)
	must.Do(t, os.MkdirAll(filepath.Join(dir, claimsName, e.ID()+".lock"), 0o700))
	if _, _, err := store.Claim([]Experiment{e}); err == nil || !strings.Contains(err.Error(), "claiming "+e.String()) {
		t.Errorf("a folder in the place of a lock: %v", err)
	}
	_, release, err := store.Claim([]Experiment{split(1)})
	must.Do(t, err)
	must.Do(t, os.RemoveAll(filepath.Join(dir, claimsName)))
	if err := release(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock that somebody has removed: %v", err)
	}
}
