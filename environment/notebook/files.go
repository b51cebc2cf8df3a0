package notebook

import (
	"context"
	"errors"
	"net/http"

	"densityuncertainty/datasets/fetch"
)

// errNoDownload is why a file that is not on this machine stays away.
var errNoDownload = errors.New("a notebook in quick mode downloads nothing")

// Files says how a notebook gets the files of data sets. In quick mode it takes
// those that are on this machine, in the folder that DENSITYUNCERTAINTY_DATA
// names or in the cache; where a download would begin there is a
// [fetch.ErrDownload] instead, and the context, which is for getting files and
// nothing else, ends with it. In full mode, what is missing is downloaded.
func Files() (context.Context, *fetch.Fetcher) {
	if !Quick() {
		return context.Background(), nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, &fetch.Fetcher{Client: &http.Client{Transport: refusal(cancel)}}
}

// refusal refuses every request, and cancels the context of the one who asks,
// so that it is not repeated.
type refusal context.CancelCauseFunc

// RoundTrip implements http.RoundTripper.
func (r refusal) RoundTrip(*http.Request) (*http.Response, error) {
	r(errNoDownload)
	return nil, errNoDownload
}
