package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// requestTimeout bounds a request with its answer.
	requestTimeout = 30 * time.Second
	// idleConnections is more than there are ever workers, so that no connection is closed only to be opened again.
	idleConnections = 10000
)

// client speaks to the API of the simulated cloud.
type client struct {
	http     *http.Client
	endpoint string
	token    string
}

func newClient(endpoint, token string) *client {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:        idleConnections,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     90 * time.Second,
		// Answers are small, and the cloud is near.
		DisableCompression: true,
	}
	return &client{
		http:     &http.Client{Transport: transport, Timeout: requestTimeout},
		endpoint: endpoint,
		token:    token,
	}
}

// apiError is what the cloud says when it says no.
type apiError struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("the cloud answered %d: %s", e.Status, e.Message)
}

// isNotFound tells whether the cloud said that there is no such thing.
func isNotFound(err error) bool {
	var refused *apiError
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// call makes one request. What is sent and what comes back are JSON; either may be nil.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	target := c.endpoint + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("User-Agent", "sim-cloud-controller-manager")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// Read to its end, or the connection could not be used again.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %w", method, path, refusal(response.StatusCode, text))
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// refusal reads an answer that is no success.
func refusal(status int, text []byte) *apiError {
	var answer struct {
		Error apiError `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error.Status == 0 {
		return &apiError{Status: status, Message: http.StatusText(status)}
	}
	return &answer.Error
}

// list gets all items of a list, page by page.
func list[T any](ctx context.Context, c *client, path string, query url.Values) ([]T, error) {
	var all []T
	for {
		var page struct {
			Items []T    `json:"items"`
			Next  string `json:"next"`
		}
		if err := c.call(ctx, http.MethodGet, path, query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("token", page.Next)
	}
}
