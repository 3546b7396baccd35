// Package collector holds the export of spans to what OpenTelemetry's collector takes in: its own receiver. It is a module of its
// own, so that the collector is no dependency of pwos.
package collector
