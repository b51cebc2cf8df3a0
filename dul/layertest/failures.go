package layertest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// Failures runs checks without the go command, as in a notebook, and returns what failed, or nil:
//
//	err := layertest.Failures(func(t testing.TB) { layertest.Dense(t, mine.Layers{}) })
//
// A check that panics fails; a check that is skipped does not. t reports and skips; its other methods, such as TempDir,
// panic.
func Failures(checks func(t testing.TB)) error {
	c := &collector{}
	c.run("", checks)
	return errors.Join(*c.found()...)
}

// run runs a check as a subtest where there are such.
func run(t testing.TB, name string, check func(t testing.TB)) {
	t.Helper()
	switch t := t.(type) {
	case *testing.T:
		t.Run(name, func(t *testing.T) { check(t) })
	case *collector:
		t.run(name, check)
	default:
		check(t)
	}
}

// A collector is a testing.TB outside of tests.
type collector struct {
	testing.TB // nil, for all methods that are not below
	name       string
	failures   []error
	root       *collector
}

func (c *collector) found() *[]error {
	if c.root != nil {
		return &c.root.failures
	}
	return &c.failures
}

// run runs a check until it returns, panics, or ends itself by Fatal or Skip.
func (c *collector) run(name string, check func(t testing.TB)) {
	sub := &collector{name: name, root: c}
	if c.root != nil {
		sub.root = c.root
	}
	if c.name != "" {
		sub.name = c.name + "/" + name
	}
	done := make(chan struct{})
	go func() { // of its own, since Goexit, by which Fatal and Skip end a check, ends a goroutine
		defer close(done)
		defer func() {
			if panicked := recover(); panicked != nil {
				sub.note(fmt.Sprintf("panic: %v", panicked))
			}
		}()
		check(sub)
	}()
	<-done
}

func (c *collector) note(text string) {
	if c.name != "" {
		text = c.name + ": " + text
	}
	found := c.found()
	*found = append(*found, errors.New(text))
}

func (c *collector) Helper()                           {}
func (c *collector) Log(...any)                        {}
func (c *collector) Logf(string, ...any)               {}
func (c *collector) Error(args ...any)                 { c.note(fmt.Sprint(args...)) }
func (c *collector) Errorf(format string, args ...any) { c.note(fmt.Sprintf(format, args...)) }
func (c *collector) Fatal(args ...any)                 { c.Error(args...); runtime.Goexit() }
func (c *collector) Fatalf(format string, args ...any) { c.Errorf(format, args...); runtime.Goexit() }
func (c *collector) Skip(...any)                       { runtime.Goexit() }
