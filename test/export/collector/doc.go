// Package collector tests the export of spans with the receiver of OpenTelemetry's collector. It is a separate module, so
// that pwos does not depend on the collector.
package collector
