// Reproduce runs the paper's experiments and makes its tables and figures, without a notebook.
//
//	reproduce list                         what there is, and what is done
//	reproduce run figure1 --scale quick    run what a set still lacks
//	reproduce table uci-nll --format md    a table from the results
//	reproduce figure figure1 --format svg  a figure from the results
//
// Further commands: choose, export, rescore, merge, options, task. "reproduce --help" lists all.
//
// Results are kept in a store, one line each; whatever is in the store is not run again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2            // the command line is wrong
	exitRequeue     = jobs.Requeue // SIGTERM: what is done is kept, the same command goes on
	exitInterrupted = 130          // as shells report a program that Ctrl-C ended
	exitHangup      = 129          // and one whose terminal was closed
)

func main() {
	ctx := context.Background()
	if len(os.Args) > 1 && slices.Contains([]string{"run", "task"}, os.Args[1]) { // there may be something to save
		ctx = untilSignal(ctx)
	}
	c := command{stdout: os.Stdout, stderr: os.Stderr, newRunner: newRunner}
	os.Exit(c.main(ctx, os.Args[1:]))
}

// untilSignal is a context that Ctrl-C, SIGTERM and the end of the terminal (SIGHUP, unless it is ignored, as by nohup) end.
func untilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		s := <-signals
		// A second Ctrl-C ends the program at once. A second SIGTERM does nothing: a cluster may well send
		// one to the program and one to the script that passes it on.
		signal.Reset(os.Interrupt)
		cancel(stoppedBy{s})
	}()
	return ctx
}

// stoppedBy is the cause of a context that a signal ended.
type stoppedBy struct{ os.Signal }

func (s stoppedBy) Error() string { return s.String() }

// command is the program with what it needs from outside.
type command struct {
	stdout, stderr io.Writer
	newRunner      func(settings) (jobs.Runner, error)
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const usage = `reproduce runs the paper's experiments and makes its tables and figures.

Usage:
  reproduce list   [flags]              list the experiment sets, tables and figures, and what is done
  reproduce run    SET|all [flags]      run the experiments of a set that are not in the store yet
  reproduce table  NAME|all [flags]     print or write a table made from the store
  reproduce figure NAME|all [flags]     write a figure made from the store
  reproduce fill   FILE     [flags]     make the generated parts of a Markdown file anew

  reproduce choose  uci|images [FILE]   choose hyperparameters of methods by runs on held-out training examples
  reproduce export  FOLDER  [flags]     make the trained networks that are part of the program, of those that runs kept
  reproduce options [STUDY]             list the options that --set takes
  reproduce rescore         [flags]     compute the metrics of image runs anew from their predictions
  reproduce merge  FOLDER.. [flags]     add the results in folders to the store
  reproduce task   FOLDER INDEX         run one task of a job array (see "reproduce run --help")

"reproduce COMMAND --help" describes the flags of a command.
`

// main carries out the command line and returns the exit status.
func (c command) main(ctx context.Context, args []string) int {
	commands := map[string]func(context.Context, []string) error{"list": c.list, "run": c.run, "table": c.table, "figure": c.figure, "fill": c.fill,
		"choose": c.choose, "export": c.export, "options": c.options, "rescore": c.rescore, "merge": c.merge, "task": c.task}
	err := usagef("no command")
	if len(args) > 0 {
		if args[0] == "help" || args[0] == "-h" || args[0] == "--help" || args[0] == "-help" {
			return c.print(c.stdout, usage, exitOK)
		}
		if carryOut, ok := commands[args[0]]; ok {
			err = carryOut(ctx, args[1:])
		} else {
			err = usagef("unknown command %q, want one of %s", args[0], strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
		}
	}
	var wrongUsage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &wrongUsage):
		return c.print(c.stderr, fmt.Sprintf("reproduce: %v\nRun \"reproduce --help\" for how to use it.\n", err), exitUsage)
	case errors.Is(err, context.Canceled):
		status := exitInterrupted
		switch context.Cause(ctx) {
		case stoppedBy{syscall.SIGTERM}:
			status = exitRequeue
		case stoppedBy{syscall.SIGHUP}:
			status = exitHangup
		}
		next := "The finished experiments are stored. To go on, run"
		var compared comparisonError
		if errors.As(err, &compared) {
			next = "Nothing is stored. To begin anew, run"
		}
		return c.print(c.stderr, fmt.Sprintf("reproduce: stopped: %v\n%s the same command again:\n  reproduce %s\n", err, next, commandLine(args)), status)
	default:
		return c.print(c.stderr, fmt.Sprintf("reproduce: %v\n", err), exitFailure)
	}
}

// print writes text and returns status, or exitFailure when the text cannot be written. Names of files, which are part
// of many errors, can have any characters: those that a terminal would obey are written as Go does.
func (c command) print(w io.Writer, text string, status int) int {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return exitFailure
	}
	return status
}

// commandLine are arguments as they are typed into a shell.
func commandLine(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = arg; arg == "" || strings.ContainsFunc(arg, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_=,./:+@%", r)
		}) {
			words[i] = jobs.ShellQuoted(arg)
		}
	}
	return strings.Join(words, " ")
}

// newFlags returns a flag set that prints nothing by itself.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// once is a flag that is being read, and is refused where it is given two values, of which one would count silently.
type once struct {
	flag.Value
	given *string
}

func (o *once) Set(text string) error {
	if o.given != nil && *o.given != text {
		return fmt.Errorf("it is given twice, before as %q", *o.given)
	}
	o.given = &text
	return o.Value.Set(text)
}

func (o *once) IsBoolFlag() bool {
	b, is := o.Value.(interface{ IsBoolFlag() bool })
	return is && b.IsBoolFlag()
}

// parse reads flags and positional arguments in any order and returns the positional ones. Only some flags
// can have several values. For --help it prints doc and the flags to standard output and returns flag.ErrHelp.
func (c command) parse(flags *flag.FlagSet, doc string, args []string) (positional []string, err error) {
	values := make(map[string]flag.Value)
	flags.VisitAll(func(f *flag.Flag) {
		values[f.Name] = f.Value
		switch f.Value.(type) {
		case *paths, assignments:
		default:
			f.Value = &once{Value: f.Value}
		}
	})
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			flags.VisitAll(func(f *flag.Flag) { f.Value = values[f.Name] }) // so that its default is known
			flags.SetOutput(c.stdout)
			hasFlags := false
			flags.VisitAll(func(*flag.Flag) { hasFlags = true })
			if hasFlags {
				doc += "\nFlags:\n"
			}
			c.print(c.stdout, doc, exitOK)
			flags.PrintDefaults()
			return nil, err
		}
		if err != nil {
			return nil, usagef("%s: %w", flags.Name(), err)
		}
		if flags.NArg() == 0 {
			return positional, nil
		}
		positional = append(positional, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// errEmptyName is the error of flags for files and folders.
var errEmptyName = errors.New("the name is empty")

// storeFlag adds --store for commands that only read: it can be repeated.
func storeFlag(flags *flag.FlagSet) *paths {
	var p paths
	flags.Var(&p, "store", "`folder or file` with results; repeat it to read several, the first counts (default figures/runs of the checkout)")
	return &p
}

// paths is a flag that can be given several times.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

// Set adds a path.
func (p *paths) Set(path string) error {
	if path == "" {
		return errEmptyName
	}
	*p = append(*p, path)
	return nil
}

// defaultStore is the store that commands take where none is named.
func defaultStore() (string, error) {
	dir, err := results.DefaultDir()
	if err != nil {
		return "", fmt.Errorf("%w with --store", err)
	}
	return dir, nil
}

// read returns the result lines of the given stores, or of the default one, and prints notes. A
// default store that does not exist yet is empty; one that is named must exist.
func (c command) read(p paths) ([]results.Result, error) {
	if len(p) == 0 {
		dir, err := defaultStore()
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		p = paths{dir}
	}
	lines, notes, err := results.Read(p...)
	for _, note := range notes {
		c.print(c.stderr, "note: "+note+"\n", exitOK)
	}
	return lines, err
}
