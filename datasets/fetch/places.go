package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Environment variables that say where files are.
const (
	// EnvData names a folder that holds files under their official names, or an
	// address (http, https or file) below which they are found.
	EnvData = "DENSITYUNCERTAINTY_DATA"
	// EnvCache names the folder for downloads, in place of the user's cache folder.
	EnvCache = "DENSITYUNCERTAINTY_CACHE"
)

// cacheDir is the folder for downloads.
func (f *Fetcher) cacheDir() (string, error) {
	if f.Cache != "" {
		return f.Cache, nil
	}
	if dir := os.Getenv(EnvCache); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("fetch: %w: no cache folder, set %s to one: %w", ErrCache, EnvCache, err)
	}
	return filepath.Join(dir, "densityuncertainty"), nil
}

// mirror splits the place that the user named into a local folder or the
// address of a mirror; both are empty if the user named none.
func (f *Fetcher) mirror() (folder, address string, err error) {
	place := f.Mirror
	if place == "" {
		place = os.Getenv(EnvData)
	}
	scheme, _, hasScheme := strings.Cut(place, "://")
	if !hasScheme {
		return place, "", nil
	}
	switch scheme {
	case "http", "https":
		return "", place, nil
	case "file":
		u, err := url.Parse(place)
		if err != nil {
			return "", "", fmt.Errorf("fetch: %s: %w", EnvData, err)
		}
		if u.Host != "" && u.Host != "localhost" {
			return "", "", fmt.Errorf("fetch: %s: file address %q names another machine; use file:///path", EnvData, place)
		}
		return filepath.FromSlash(u.Path), "", nil
	}
	return "", "", fmt.Errorf("fetch: %s: cannot use %q; give a folder or an http, https or file address", EnvData, place)
}

// Local returns the path of the named file in the local folder given by Mirror or
// DENSITYUNCERTAINTY_DATA, and whether it is there. It is false without error if
// no local folder was named. A folder that does not exist is an error, as its name
// may be misspelt.
func (f *Fetcher) Local(name string) (path string, found bool, err error) {
	if f == nil {
		f = new(Fetcher)
	}
	folder, _, err := f.mirror()
	if err != nil || folder == "" {
		return "", false, err
	}
	named := EnvData + " names"
	if f.Mirror != "" {
		named = "the Fetcher's Mirror is"
	}
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("fetch: looking for %s: %s %s, which does not exist; name a folder that does, or none", name, named, folder)
	case err != nil:
		return "", false, fmt.Errorf("fetch: looking for %s: %s %s: %w", name, named, folder, err)
	case !info.IsDir():
		return "", false, fmt.Errorf("fetch: looking for %s: %s %s, which is not a folder; name one, or none", name, named, folder)
	}
	path = filepath.Join(folder, filepath.FromSlash(name))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("fetch: looking for %s: %w", name, err)
	case info.IsDir():
		return "", false, fmt.Errorf("fetch: looking for %s: %s is a folder", name, path)
	}
	return path, true, nil
}

// looked lists the paths at which a file was looked for: in the local folder, if
// the user named one, and in the cache.
func (f *Fetcher) looked(file File, cached string) ([]string, error) {
	folder, _, err := f.mirror()
	if err != nil || folder == "" {
		return []string{cached}, err
	}
	return []string{filepath.Join(folder, filepath.FromSlash(file.Name)), cached}, nil
}

// addresses lists where to download from, in order of preference.
func (f *Fetcher) addresses(file File) ([]string, error) {
	var list []string
	_, mirror, err := f.mirror()
	if err != nil {
		return nil, err
	}
	if mirror != "" {
		u, err := url.JoinPath(mirror, file.Name)
		if err != nil {
			return nil, fmt.Errorf("fetch: mirror address %q: %w", mirror, err)
		}
		list = append(list, u)
	}
	if file.URL != "" {
		list = append(list, file.URL)
	}
	return list, nil
}
