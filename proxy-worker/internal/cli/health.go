package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// health answers whether the program lives and whether it serves.
type health struct {
	servers                        []server
	temporal                       client.Client
	namespace, taskQueue, identity string
	started                        atomic.Bool // the Worker
}

func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s@%s", os.Getpid(), host, program)
}

func checkListen(address string) error {
	if address == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--%s: %q is no HOST:PORT: %w", flagListen, address, err)
	}
	return nil
}

// listen serves until stop is called. A listener that breaks ends the program.
func (h *health) listen(ctx context.Context, address string, logger *slog.Logger, fail context.CancelCauseFunc) (stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, usagef("--%s: %w", flagListen, err)
	}
	srv := &http.Server{Handler: h.handler(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("--%s: %w", flagListen, err))
		}
	}()
	logger.Info("health checks", "url", "http://"+listener.Addr().String()+"/readyz")
	return func() { _ = srv.Close() }, nil
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := h.ready(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// ready asks Temporal whether it sees this Worker poll: that shows in one answer
// that it is reached, and that calls come here.
func (h *health) ready(ctx context.Context) error {
	listed := false
	for i := range h.servers {
		listed = listed || h.servers[i].proxy.Listed()
	}
	switch {
	case !listed:
		return errors.New("no server has listed its tools")
	case !h.started.Load():
		return errors.New("the Worker does not run")
	}
	reply, err := h.temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     h.namespace,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: h.taskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_NEXUS,
	})
	if err != nil {
		return errors.New("no answer from Temporal")
	}
	for _, p := range reply.GetPollers() {
		if p.GetIdentity() == h.identity {
			return nil
		}
	}
	return errors.New("the Worker is not seen polling by Temporal yet")
}
