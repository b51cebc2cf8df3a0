package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// download is the transfer of one file from one address into a part file.
type download struct {
	file     File
	url      string
	part     string
	client   *http.Client
	progress func(Progress)
	policy   policy
}

// retryable marks a failure after which another try may succeed.
type retryable struct{ error }

// run downloads until the part file is complete and checked. After a failure
// that may pass it waits and tries again, going on from what it has.
func (d *download) run(ctx context.Context) error {
	pause := d.policy.pause
	for try := 1; ; try++ {
		err := d.try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var again retryable
		if !errors.As(err, &again) {
			return err
		}
		if try >= d.policy.attempts {
			return fmt.Errorf("gave up after %d tries: %w", try, again.error)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// try makes one request and checks the outcome.
func (d *download) try(ctx context.Context) error {
	have, err := d.resumeAt()
	if err != nil {
		return err
	}
	if err := d.transfer(ctx, have); err != nil {
		return err
	}
	if err := verify(d.file, d.part); err != nil {
		if dropErr := d.drop(); dropErr != nil {
			return errors.Join(err, dropErr)
		}
		// A file put together from two transfers may be bad at the seam; one
		// made in a single transfer will not get better.
		if have > 0 {
			return retryable{err}
		}
		return err
	}
	return nil
}

// resumeAt returns how many bytes of an earlier transfer can be built upon. A
// part file is good for that only if it is from the same address and either the
// server can say whether its file has changed since, or a checksum will tell.
func (d *download) resumeAt() (int64, error) {
	info, err := os.Stat(d.part)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for an earlier download: %w", err)
	}
	from, err := readOrigin(d.part)
	if err != nil {
		return 0, err
	}
	if from.URL != d.url || (from.Validator == "" && d.file.SHA256 == "") {
		return 0, nil
	}
	if d.file.Size > 0 && info.Size() >= d.file.Size {
		return 0, nil // complete but never accepted, or too long
	}
	return info.Size(), nil
}

// transfer requests the file from byte have on and writes it.
func (d *download) transfer(ctx context.Context, have int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.policy.stall, func() {
		cancel(fmt.Errorf("the connection brought fewer than %d bytes in %v", d.policy.least, d.policy.stall))
	})
	defer stalled.Stop()

	response, err := d.request(ctx, have)
	var unknownHost *net.DNSError
	if errors.As(err, &unknownHost) && unknownHost.IsNotFound {
		return err // asking again would only make the user wait
	}
	if err != nil {
		return retryable{causeOr(ctx, err)}
	}
	body := &watchedReader{Reader: response.Body, ctx: ctx, timer: stalled, policy: d.policy}
	return errors.Join(d.receive(response, body, have), response.Body.Close())
}

func (d *download) request(ctx context.Context, have int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, err
	}
	// Sizes and offsets are to be those of the file itself.
	request.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		from, err := readOrigin(d.part)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if from.Validator != "" {
			request.Header.Set("If-Range", from.Validator)
		}
	}
	return d.client.Do(request)
}

// receive decides by the answer whether to go on at byte have or to start anew.
func (d *download) receive(response *http.Response, body io.Reader, have int64) error {
	total := int64(-1)
	switch response.StatusCode {
	case http.StatusOK:
		have = 0
		total = response.ContentLength
	case http.StatusPartialContent:
		start, size, err := parseContentRange(response.Header.Get("Content-Range"))
		if err != nil || start != have {
			// What the server sends does not continue what is here.
			return retryable{errors.Join(fmt.Errorf("asked for the file from byte %d, got %q", have, response.Header.Get("Content-Range")), err, d.drop())}
		}
		total = size
	case http.StatusRequestedRangeNotSatisfiable:
		if response.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have) {
			return nil // an earlier run was stopped between the last byte and the check
		}
		return retryable{errors.Join(statusError(response), d.drop())}
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return retryable{statusError(response)}
	default:
		if response.StatusCode >= 500 {
			return retryable{statusError(response)}
		}
		return statusError(response)
	}
	if d.file.Size > 0 && total >= 0 && total != d.file.Size {
		return sizeError(d.url, total, d.file.Size)
	}
	if total > d.file.most() {
		return errors.Join(limitError(d.url, d.file.most()), d.drop())
	}
	if have == 0 {
		// Remove the old part before its record is replaced: a crash in between
		// must not leave one server's bytes under another's record.
		if err := d.drop(); err != nil {
			return err
		}
	}
	if err := writeOrigin(d.part, origin{URL: d.url, Validator: validator(response.Header)}); err != nil {
		var space *noSpaceError
		if errors.As(err, &space) {
			space.need = remaining(have, total)
		}
		return d.spaceFor(err)
	}
	return d.spaceFor(d.write(body, have, total))
}

// spaceFor removes what was downloaded if the disk is full: others need the room.
func (d *download) spaceFor(err error) error {
	var space *noSpaceError
	if errors.As(err, &space) {
		return errors.Join(err, d.drop())
	}
	return err
}

// write appends body to the first have bytes of the part file.
func (d *download) write(body io.Reader, have, total int64) (err error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if have == 0 {
		flag |= os.O_TRUNC
	}
	out, err := d.policy.open(d.part, flag, 0o644)
	if err != nil {
		return writeError(d.part, remaining(have, total), err)
	}
	done := have
	defer func() {
		if closeErr := out.Close(); err == nil && closeErr != nil {
			err = writeError(d.part, remaining(done, total), closeErr)
		}
	}()
	meter := meter{download: d, total: total}
	meter.report(done, true)
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buffer)
		if n > 0 {
			written, err := out.Write(buffer[:n])
			done += int64(written)
			if err != nil {
				return writeError(d.part, remaining(done, total), err)
			}
			if done > d.file.most() {
				return errors.Join(limitError(d.url, d.file.most()), d.drop())
			}
			meter.report(done, false)
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return retryable{errors.Join(fmt.Errorf("after %d bytes: %w", done, readErr), out.Sync())}
		}
	}
	if err := out.Sync(); err != nil {
		return writeError(d.part, remaining(done, total), err)
	}
	if total >= 0 && done != total {
		return retryable{fmt.Errorf("%w: %d of %d bytes came", io.ErrUnexpectedEOF, done, total)}
	}
	meter.report(done, true)
	return nil
}

// drop removes the part file and what is known of it.
func (d *download) drop() error {
	return errors.Join(removeIfThere(d.part), removeIfThere(originPath(d.part)))
}

func remaining(done, total int64) int64 {
	if total < 0 {
		return -1
	}
	return total - done
}

// validator returns what identifies this version of the server's file. Weak
// entity tags do not promise equal bytes.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// parseContentRange reads "bytes start-end/size"; size is -1 if given as "*".
func parseContentRange(header string) (start, size int64, err error) {
	var end int64
	if _, err = fmt.Sscanf(header, "bytes %d-%d/%d", &start, &end, &size); err == nil {
		return start, size, nil
	}
	if _, starErr := fmt.Sscanf(header, "bytes %d-%d/*", &start, &end); starErr == nil {
		return start, -1, nil
	}
	return 0, 0, fmt.Errorf("malformed Content-Range %q: %w", header, err)
}

// causeOr returns why ctx ended, if it has, and err otherwise: "silent for 1m"
// says more than "context canceled".
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watchedReader puts off the stall alarm whenever enough has arrived.
type watchedReader struct {
	io.Reader
	ctx    context.Context
	timer  *time.Timer
	policy policy
	since  int64 // bytes since the alarm was put off
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.since += int64(n); w.since >= w.policy.least {
		w.since = 0
		w.timer.Reset(w.policy.stall)
	}
	return n, causeOr(w.ctx, err)
}

// meter passes progress on, not too often.
type meter struct {
	download *download
	total    int64
	last     time.Time
}

func (m *meter) report(done int64, always bool) {
	d := m.download
	if d.progress == nil || (!always && time.Since(m.last) < d.policy.every) {
		return
	}
	m.last = time.Now()
	d.progress(Progress{Name: d.file.Name, URL: d.url, Done: done, Total: m.total})
}
