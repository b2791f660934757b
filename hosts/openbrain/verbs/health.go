package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/waiting"
)

func (p Parts) healthCmd() *cobra.Command {
	var address string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it can serve; for containers without a shell",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
				return fmt.Errorf("--url: must be an http or https address: %w", core.ErrInvalid)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			done := waiting.Say(cmd.ErrOrStderr(), "asking "+u.Host)
			err = ready(ctx, u.JoinPath("/readyz").String())
			if done(); err != nil {
				return p.Failed(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return p.Failed(err)
		},
	}
	cmd.Flags().StringVar(&address, "url", "http://127.0.0.1:8787", "address of the server")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait")
	return cmd
}

// ready returns nil when the server answers that it is ready. It needs no key, and sends none.
func ready(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return fmt.Errorf("health: no answer: %w: %w", err, core.ErrUnavailable)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("health: not ready, status %d: %w", res.StatusCode, core.ErrUnavailable)
	}
	return nil
}
