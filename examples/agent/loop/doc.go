// Package loop is an agent as a Workflow: it asks a model in activities, calls
// tools durably, and has a person approve what destroys something. It knows no
// provider: those that implement [Model] are in packages of their own.
package loop
