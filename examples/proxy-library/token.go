package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"golang.org/x/oauth2"
)

// tokenFile is an auth.OAuthHandler: the token is in a file that something else
// writes anew from time to time, as with secrets that are mounted.
type tokenFile string

func newTokenFile(path string) (tokenFile, error) {
	if path == "" {
		return "", errors.New("--token-file: which file has the token?")
	}
	_, err := tokenFile(path).Token()
	return tokenFile(path), err
}

// Token implements oauth2.TokenSource.
func (f tokenFile) Token() (*oauth2.Token, error) {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return nil, err
	}
	token := string(bytes.TrimSpace(data))
	if token == "" {
		return nil, fmt.Errorf("%s: there is no token", string(f))
	}
	return &oauth2.Token{AccessToken: token}, nil
}

// TokenSource implements auth.OAuthHandler.
func (f tokenFile) TokenSource(context.Context) (oauth2.TokenSource, error) { return f, nil }

// Authorize implements auth.OAuthHandler: it is asked when the server refuses a
// request, which is made again where the file has another token by now.
func (f tokenFile) Authorize(_ context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	token, err := f.Token()
	if err != nil {
		return err
	}
	if req.Header.Get("Authorization") == "Bearer "+token.AccessToken {
		return fmt.Errorf("the server refuses the token of %s", string(f))
	}
	return nil
}
