package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Fetcher gets files. Its zero value is ready to use, as is a nil *Fetcher.
type Fetcher struct {
	// Cache is the folder for downloads. Empty means the environment variable
	// DENSITYUNCERTAINTY_CACHE, or else the folder densityuncertainty in the
	// user's cache folder.
	Cache string
	// Mirror is a local folder, or an http, https or file address, where files
	// are looked for before their official addresses. Empty means the
	// environment variable DENSITYUNCERTAINTY_DATA.
	Mirror string
	// Client makes the requests; nil means one with sensible time limits.
	Client *http.Client
	// Progress, if not nil, is called from the downloading goroutine: at the
	// start, now and then, and at the end of a download.
	Progress func(Progress)

	policy policy
}

// Progress tells how far a download is.
type Progress struct {
	Name  string // the file's name
	URL   string // where it comes from
	Done  int64  // bytes on disk, those of an earlier, interrupted download included
	Total int64  // bytes in all; -1 if the server did not say
}

// policy holds what tests replace: patience, and the way to the disk.
type policy struct {
	attempts int           // tries for each address
	pause    time.Duration // before the second try; doubles with each further one
	stall    time.Duration // give up a connection that in so long a time
	least    int64         // brings fewer than so many bytes
	every    time.Duration // least time between two calls of Progress
	open     func(path string, flag int, perm fs.FileMode) (partFile, error)
}

// partFile is what a download needs of a file.
type partFile interface {
	io.WriteCloser
	Sync() error
}

func (p policy) withDefaults() policy {
	p.attempts = cmp.Or(p.attempts, 4)
	p.pause = cmp.Or(p.pause, time.Second)
	p.stall = cmp.Or(p.stall, time.Minute)
	p.least = cmp.Or(p.least, 64<<10)
	p.every = cmp.Or(p.every, 200*time.Millisecond)
	if p.open == nil {
		p.open = func(path string, flag int, perm fs.FileMode) (partFile, error) { return os.OpenFile(path, flag, perm) }
	}
	return p
}

// Get returns the path of a checked copy of the file on this machine. It looks
// in this order, and stops at the first place that has the file:
//
//  1. the local folder (Mirror), where the file is used in place;
//  2. the cache;
//  3. the mirror (Mirror, if that is an http or https address);
//  4. the official address.
//
// A file in the local folder that fails its check is an error; a file in the
// cache that does is downloaded again. Cancelling ctx stops a download and keeps
// what it has for later resumption.
//
// Errors of a download are of type [*Error]; for each address tried there is
// one, joined. Their causes include [ErrDamaged], net errors and ctx's error.
// A file that is in the cache is returned from one that cannot be written, too;
// for others that is [ErrCache].
func (f *Fetcher) Get(ctx context.Context, file File) (string, error) {
	if f == nil {
		f = new(Fetcher)
	}
	path, found, err := f.given(file)
	if err != nil || found {
		return path, err
	}
	return f.cached(ctx, file)
}

// Have is Get without a download: the path of a good copy in the local folder or the cache, and whether there is one.
func (f *Fetcher) Have(file File) (path string, found bool, err error) {
	if f == nil {
		f = new(Fetcher)
	}
	if path, found, err = f.given(file); err != nil || found {
		return path, found, err
	}
	dir, err := f.cacheDir()
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(dir, filepath.FromSlash(file.Name))
	if checkCached(file, path) != nil {
		return "", false, nil
	}
	return path, true, nil
}

// given is a file in the local folder, which must be a good one.
func (f *Fetcher) given(file File) (path string, found bool, err error) {
	if err := file.validate(); err != nil {
		return "", false, err
	}
	if path, found, err = f.Local(file.Name); err != nil || !found {
		return "", false, err
	}
	if err := verify(file, path); err != nil {
		return "", false, fmt.Errorf("fetch: the local file does not pass its check, remove or replace it: %w", err)
	}
	return path, true, nil
}

// cached returns the file's path in the cache, downloading it if need be.
func (f *Fetcher) cached(ctx context.Context, file File) (string, error) {
	dir, err := f.cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.FromSlash(file.Name))
	err = f.fill(ctx, file, path)
	if errors.Is(err, ErrCache) && checkCached(file, path) == nil { // in a folder that somebody else fills
		err = nil
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// fill sees to it that the cache has the file, at path.
func (f *Fetcher) fill(ctx context.Context, file File, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("fetch: %w: making its folder (set %s to use another): %w", ErrCache, EnvCache, err)
	}
	// The lock file stays: removing it would let a third process lock a new file
	// of that name while a second holds the old one.
	lock := flock.New(path+".lock", flock.SetPermissions(0o644))
	switch _, err := lock.TryLockContext(ctx, 100*time.Millisecond); {
	case ctx.Err() != nil:
		return fmt.Errorf("fetch: locking %s: %w", lock.Path(), ctx.Err())
	case err != nil:
		return fmt.Errorf("fetch: %w: locking %s (set %s to use another): %w", ErrCache, lock.Path(), EnvCache, err)
	}
	defer func() {
		if unlockErr := lock.Unlock(); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("fetch: unlocking %s: %w", lock.Path(), unlockErr))
		}
	}()
	cacheErr := checkCached(file, path)
	if cacheErr == nil {
		return nil
	}
	if err := f.download(ctx, file, path); err != nil {
		if !errors.Is(cacheErr, fs.ErrNotExist) {
			err = errors.Join(fmt.Errorf("fetch: the cached copy is not usable: %w", cacheErr), err)
		}
		return err
	}
	return nil
}

// checkCached returns nil if path holds the file, whole, and otherwise what is
// wrong with it; fs.ErrNotExist if it is not there.
func checkCached(file File, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	return verify(file, path)
}

// download gets the file from the first address that has a good copy.
func (f *Fetcher) download(ctx context.Context, file File, path string) error {
	addresses, err := f.addresses(file)
	if err != nil {
		return err
	}
	looked, err := f.looked(file, path)
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		return fmt.Errorf("fetch: there is no good copy of %s at %s, and %w; put it into a folder and set %s to that folder",
			file.Name, strings.Join(looked, " or "), ErrNoAddress, EnvData)
	}
	var failures []error
	for _, address := range addresses {
		d := download{file: file, url: address, part: path + ".part", client: cmp.Or(f.Client, defaultClient), progress: f.Progress, policy: f.policy.withDefaults()}
		err := d.run(ctx)
		if err == nil {
			return publish(d.part, path)
		}
		failures = append(failures, &Error{Name: file.Name, URL: address, Looked: looked, Err: err})
		var space *noSpaceError
		if ctx.Err() != nil || errors.As(err, &space) {
			break // another address would not help
		}
	}
	return errors.Join(failures...)
}

// defaultClient limits the wait for an answer, but not the whole transfer, which
// may be long; the transfer itself is watched for stalls.
var defaultClient = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	TLSHandshakeTimeout:   20 * time.Second,
	ResponseHeaderTimeout: time.Minute,
	IdleConnTimeout:       time.Minute,
	ForceAttemptHTTP2:     true,
}}
