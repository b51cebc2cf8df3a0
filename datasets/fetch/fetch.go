// Package fetch finds published data files in a local folder ([EnvData]) or the cache, or downloads them from their
// official addresses, and checks each against its SHA-256. A download that was stopped is resumed. If several processes
// ask for a file, one downloads it.
package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Environment variables that say where files are.
const (
	// EnvData names a local folder with files under their official names.
	EnvData = "DENSITYUNCERTAINTY_DATA"
	// EnvCache names the folder for downloads, instead of the user's cache folder.
	EnvCache = "DENSITYUNCERTAINTY_CACHE"
)

// File describes a published file.
type File struct {
	Name   string // path in the cache and in a local folder; slashes separate folders
	URL    string // the official address
	SHA256 string // in hexadecimal
	Size   int64  // in bytes; a download stops there, or at 1 GiB if it is 0
}

// verify returns nil if the file at path has the right checksum.
func (f File) verify(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, expected %s: it is damaged or another version", path, got, f.SHA256)
	}
	return nil
}

// Fetcher finds or downloads files. Its zero value and a nil *Fetcher are ready to use.
type Fetcher struct {
	Folder string       // the local folder; empty means DENSITYUNCERTAINTY_DATA, or no folder if that is not set
	Cache  string       // the folder for downloads; empty means DENSITYUNCERTAINTY_CACHE, or else the user's cache folder
	Client *http.Client // makes the requests; nil means http.DefaultClient
}

// Get returns the path of a copy of the file with the right checksum, in the local folder or the cache; otherwise it
// downloads the file into the cache. A local file with a wrong checksum is an error; a file in the cache with a wrong
// one is downloaded again. If ctx is cancelled the download stops, and a later call resumes it.
func (f *Fetcher) Get(ctx context.Context, file File) (path string, err error) {
	path, found, err := f.Local(file.Name)
	if err != nil {
		return "", err
	}
	if found {
		if err := file.verify(path); err != nil {
			return "", fmt.Errorf("fetch: remove or replace the local file: %w", err)
		}
		return path, nil
	}
	if f == nil {
		f = new(Fetcher)
	}
	dir, err := f.cacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.FromSlash(file.Name))
	if file.verify(path) == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", fmt.Errorf("fetch: making the folder of the cache (set %s to use another): %w", EnvCache, err)
	}
	// The lock file stays: removing it would let a third process lock a new file
	// of that name while a second holds the old one.
	lock := flock.New(path+".lock", flock.SetPermissions(0o666))
	switch _, err := lock.TryLockContext(ctx, 100*time.Millisecond); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("fetch: locking %s: %w", lock.Path(), ctx.Err())
	case err != nil:
		return "", fmt.Errorf("fetch: locking %s (set %s to use another cache): %w", lock.Path(), EnvCache, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if file.verify(path) == nil { // another process downloaded it
		return path, nil
	}
	if err := f.download(ctx, file, path); err != nil {
		return "", fmt.Errorf("fetch: %s from %s could not be downloaded: %w; without network access, get it elsewhere, put it into a folder as %s and set %s to that folder (now %q; the cache is %s)",
			file.Name, file.URL, err, file.Name, EnvData, f.folder(), dir)
	}
	return path, nil
}

// download gets the file from its address, in three tries. A part that proves wrong is deleted.
func (f *Fetcher) download(ctx context.Context, file File, path string) (err error) {
	part := path + ".part"
	for try := range 3 {
		if try > 0 {
			time.Sleep(300 * time.Millisecond)
		}
		if err = f.transfer(ctx, file, part); err == nil {
			if err = file.verify(part); err == nil {
				return os.Rename(part, path)
			}
			err = errors.Join(err, os.Remove(part))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}

// transfer appends to the part file what it lacks.
func (f *Fetcher) transfer(ctx context.Context, file File, part string) (err error) {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	have, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, file.URL, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity") // else the client would unpack an archive that is sent as encoded
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	response, err := cmp.Or(f.Client, http.DefaultClient).Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch response.StatusCode {
	case http.StatusOK:
		have = 0
		if err := out.Truncate(0); err != nil {
			return err
		}
	case http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable: // the part is complete, or its checksum is wrong
		return nil
	default:
		return errors.New("the server answered " + response.Status)
	}
	_, err = io.Copy(out, io.LimitReader(response.Body, cmp.Or(file.Size, 1<<30)-have+1))
	return err
}

// cacheDir is the folder for downloads.
func (f *Fetcher) cacheDir() (string, error) {
	if dir := cmp.Or(f.Cache, os.Getenv(EnvCache)); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("fetch: there is no folder for the cache, set %s to one: %w", EnvCache, err)
	}
	return filepath.Join(dir, "densityuncertainty"), nil
}

// folder is the local folder, or empty.
func (f *Fetcher) folder() string {
	if f != nil && f.Folder != "" {
		return f.Folder
	}
	return os.Getenv(EnvData)
}

// Local returns the path of the named file in the local folder, and whether it is there. found is false if no local
// folder is set. A folder that does not exist is an error, since its name may be misspelt.
func (f *Fetcher) Local(name string) (path string, found bool, err error) {
	folder := f.folder()
	if folder == "" {
		return "", false, nil
	}
	if _, err := os.Stat(folder); err != nil {
		return "", false, fmt.Errorf("fetch: looking for %s: the local folder (see %s) is not usable: %w", name, EnvData, err)
	}
	path = filepath.Join(folder, filepath.FromSlash(name))
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("fetch: looking for %s: %w", name, err)
	}
	return path, true, nil
}
