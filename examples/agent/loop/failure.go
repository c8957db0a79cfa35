package loop

import (
	"fmt"
	"net/http"
	"strings"

	"go.temporal.io/sdk/temporal"
)

// Failure is the error of a provider as Temporal may keep it: without the key,
// which a refusal or a proxy may repeat. Status is 0 where there was no answer.
// What the same request could not mend is not asked again.
func Failure(provider, key string, status int, message string) error {
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		// These may have a part of the key.
		message = "it refuses the API key of the Worker"
	case status == 0, status >= http.StatusInternalServerError, status == http.StatusTooManyRequests,
		status == http.StatusRequestTimeout, status == http.StatusConflict:
		return temporal.NewApplicationError(fmt.Sprintf("%s, status %d: %s", provider, status, message), "Model")
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s, status %d: %s", provider, status, message), "Model", nil)
}

// CutOff is the error of a reply that ends in the middle: its calls would have
// half of their arguments.
func CutOff(provider string) error {
	return temporal.NewNonRetryableApplicationError(provider+": the reply was cut off, since it took too many tokens", "Model", nil)
}
