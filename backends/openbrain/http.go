package openbrain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

const (
	// maxBody bounds what is read of one answer, maxRequest what is sent: an answer that holds it, with metadata written as
	// a text in a string, must be readable.
	maxBody, maxRequest = 64 << 20, 24 << 20
	// maxPage bounds what is read of a page of several thoughts: what is larger is asked for in smaller pages. A page takes several times its size in memory.
	maxPage = 16 << 20
	// firstBackoff and lastBackoff bound the waits between tries when the server names none.
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 10 * time.Second

	// headerPosition names the position of an entry in a request, and in the answer of a server that stores one thought for each.
	headerPosition = "OpenBrain-Position"
	// headerCreated names when the thought was created that a request is about: a server that gives the id of one that is gone to another knows it by that.
	headerCreated = "OpenBrain-Created"

	pathThoughts = "/v1/thoughts"
	pathRecent   = "/v1/thoughts/recent"
	pathSearch   = "/v1/search"
	pathStats    = "/v1/stats"
)

// call is one request, before it is bound to a server.
type call struct {
	method, path string
	query        url.Values
	// place, when not empty, goes into the header OpenBrain-Position.
	place string
	// created, when it is not zero, goes into the header OpenBrain-Created.
	created time.Time
	// body is sent as JSON when it is not nil.
	body any
	// one says that the path names a thought, so that 404 means the thought and not the call is missing.
	one bool
	// wantJSON says that an answer without JSON in it is useless.
	wantJSON bool
	// single means that there is no second try.
	single bool
	// page says that a smaller answer can be had by asking for less.
	page bool
	// sure means that after a try in doubt there is no other until it is known that it did nothing: somebody else repeats it later.
	sure bool
	// key names the request: a server that knows the header Idempotency-Key does what it asks for once.
	key string
	// answered, when not nil, is shown the header of an answer that is 2xx.
	answered func(http.Header)
}

func (c call) String() string {
	if c.one {
		return c.method + " " + pathThoughts + "/{id}"
	}
	return c.method + " " + c.path
}

// thoughtPath names one thought. Ids are the server's: they are escaped whatever they hold.
func thoughtPath(id string) string { return pathThoughts + "/" + url.PathEscape(id) }

// client sends requests to one server. It is safe for concurrent use.
type client struct {
	http  *resty.Client
	cfg   Config
	log   *slog.Logger
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
	// places says that the server keeps positions.
	places atomic.Bool
	// lists is what was learnt of the server's lists, by path, and can the rest.
	lists pagings
	can   abilities
}

func newClient(cfg Config, hc *http.Client) *client {
	own := http.Client{}
	if hc != nil {
		own = *hc // resty changes the client it is given
	}
	r := resty.NewWithClient(&own).
		SetRedirectPolicy(resty.RedirectPolicyFunc(endpoint.NoRedirect)).
		SetResponseBodyLimit(maxBody).
		SetDisableWarn(true).
		SetLogger(quiet{}).
		SetHeader("Accept", "application/json").
		// A request with a key of its own would be repeated by the transport; what may be repeated is decided here.
		SetPreRequestHook(func(_ *resty.Client, r *http.Request) error { r.GetBody = nil; return nil })
	return &client{http: r, cfg: cfg}
}

// quiet keeps resty from writing to standard error.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}

// do sends a request until it succeeds, fails for good, or the retries are used up. It returns the body.
func (c *client) do(ctx context.Context, op string, r call) ([]byte, error) {
	return c.doUnless(ctx, op, r, nil)
}

// doUnless is do, except that after a failure that leaves in doubt whether the server acted, it first asks done, and
// stops with an empty body when that says so. It asks after the wait: a server that is slow may act only then.
func (c *client) doUnless(ctx context.Context, op string, r call, done func(context.Context) (bool, error)) ([]byte, error) {
	for try := 0; ; try++ {
		body, err := c.once(ctx, r)
		if err == nil {
			return body, nil
		}
		f := asFailure(err)
		if f == nil { // ctx ended
			return nil, err
		}
		again := f.retry && !r.single && try < c.cfg.MaxRetries
		if again {
			wait := c.wait(try, f.wait)
			c.log.WarnContext(ctx, "openbrain request failed, trying again", "op", op, "call", r.String(),
				"try", try+1, "status", f.status, "cause", f.what, "wait", wait)
			if serr := c.sleep(ctx, wait); serr != nil {
				return nil, fmt.Errorf("%v, and then: %w", f.what, serr)
			}
		}
		if f.doubt && done != nil {
			ok, err := done(ctx)
			if ok {
				return nil, nil
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%v, and then: %w", f.what, ctx.Err())
			}
			if err != nil {
				c.log.DebugContext(ctx, "openbrain cannot be asked what it stored", "op", op, "err", err)
				if r.sure {
					return nil, err
				}
			}
		}
		if !again {
			return nil, err
		}
	}
}

func asFailure(err error) *failure {
	f, _ := errors.AsType[*failure](err)
	return f
}

// once sends a request once. Its errors are *failure, or wrap ctx's error.
func (c *client) once(ctx context.Context, r call) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tryCtx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req := c.http.R().SetContext(tryCtx).SetAuthToken(c.cfg.APIKey)
	if r.page {
		req.SetResponseBodyLimit(maxPage)
	}
	if r.place != "" {
		req.SetHeader(headerPosition, r.place)
	}
	if !r.created.IsZero() {
		req.SetHeader(headerCreated, r.created.UTC().Format(time.RFC3339Nano))
	}
	var sent []byte
	if r.body != nil {
		var err error
		if sent, err = json.Marshal(r.body); err != nil {
			return nil, &failure{what: "request cannot be written as JSON", kind: core.ErrInvalid}
		}
		if len(sent) > maxRequest {
			return nil, &failure{
				what: fmt.Sprintf("entry is too large: %d bytes as JSON, and more than %d could not be read back", len(sent), maxRequest),
				kind: core.ErrInvalid,
			}
		}
		req.SetHeader("Content-Type", "application/json").SetBody(sent)
	}
	if r.key != "" {
		req.SetHeader("Idempotency-Key", r.key)
	}
	target := c.cfg.BaseURL + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	res, err := req.Execute(r.method, target)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return nil, cerr
		}
		return nil, transportFailure(err)
	}
	if r.place != "" && res.Header().Get(headerPosition) != "" {
		c.places.Store(true)
	}
	status, body := res.StatusCode(), res.Body()
	if status < 200 || status > 299 {
		f := statusFailure(status, res.Header(), body, sent, c.cfg.APIKey)
		if !r.one && status == http.StatusNotFound {
			f.kind = errors.ErrUnsupported
		}
		if errors.Is(f.kind, errors.ErrUnsupported) {
			f.what += " to " + r.String() + ", which this server does not offer; check baseUrl"
		}
		return nil, f
	}
	if r.answered != nil {
		r.answered(res.Header())
	}
	return c.usable(r, status, res.Header(), body)
}

// usable keeps answers of something that is not the server (a proxy, a login page) from counting as success. Where
// nothing is wanted from the body, plain text will do.
func (c *client) usable(r call, status int, header http.Header, body []byte) ([]byte, error) {
	kind := strings.ToLower(header.Get("Content-Type"))
	switch {
	case len(bytes.TrimSpace(body)) == 0 && r.wantJSON:
		return nil, garbage(status, "an empty body")
	case len(bytes.TrimSpace(body)) == 0:
		return nil, nil
	case json.Valid(body):
		return body, nil
	case r.wantJSON || strings.Contains(kind, "json") || strings.Contains(kind, "html"):
		return nil, garbage(status, "a body that is not JSON")
	}
	return nil, nil
}

// wait returns how long to wait before the next try: what the server asked for, or an exponential backoff with full
// jitter. A date that has passed asks for nothing: the clocks may differ.
func (c *client) wait(try int, asked string) time.Duration {
	if d, ok := endpoint.RetryAfter(asked, c.now()); ok && d > 0 {
		return min(d, c.cfg.MaxWait)
	}
	return endpoint.Backoff(firstBackoff, min(lastBackoff, c.cfg.MaxWait), try)
}
