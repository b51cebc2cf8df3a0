package layertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// Failures runs checks without the go command, as in a notebook, and returns
// what they found, nil where all hold:
//
//	err := layertest.Failures(func(t testing.TB) { layertest.Dense(t, mine.Layers{}) })
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

// A collector is a testing.TB outside of tests. It has what checks use.
type collector struct {
	testing.TB // nil
	name       string
	failures   []error
	root       *collector
	failed     bool
}

func (c *collector) found() *[]error {
	if c.root != nil {
		return &c.root.failures
	}
	return &c.failures
}

// run runs a check until it returns or ends itself by Fatal.
func (c *collector) run(name string, check func(t testing.TB)) {
	sub := &collector{name: name, root: c}
	if c.root != nil {
		sub.root = c.root
	}
	if c.name != "" {
		sub.name = c.name + "/" + name
	}
	done := make(chan struct{})
	go func() { // Goexit, by which Fatal ends a check, ends a goroutine
		defer close(done)
		check(sub)
	}()
	<-done
	c.failed = c.failed || sub.failed
}

func (c *collector) note(text string) {
	c.failed = true
	found := c.found()
	*found = append(*found, fmt.Errorf("%s: %s", c.name, text))
}

func (c *collector) Helper()                           {}
func (c *collector) Name() string                      { return c.name }
func (c *collector) Failed() bool                      { return c.failed }
func (c *collector) Log(...any)                        {}
func (c *collector) Logf(string, ...any)               {}
func (c *collector) Context() context.Context          { return context.Background() }
func (c *collector) Error(args ...any)                 { c.note(fmt.Sprint(args...)) }
func (c *collector) Errorf(format string, args ...any) { c.note(fmt.Sprintf(format, args...)) }
func (c *collector) Fail()                             { c.note("failed") }
func (c *collector) FailNow()                          { c.Fail(); runtime.Goexit() }
func (c *collector) Fatal(args ...any)                 { c.Error(args...); runtime.Goexit() }
func (c *collector) Fatalf(format string, args ...any) { c.Errorf(format, args...); runtime.Goexit() }
