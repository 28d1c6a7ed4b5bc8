// How /metrics is answered, as promhttp does: in Prometheus' text form or OpenMetrics' by Accept, in gzip by
// Accept-Encoding. Exemplars are in neither.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::http {

struct MetricsAnswer {
  Headers headers;  // Content-Type, Content-Encoding
  std::string body;
};
// `text`: in Prometheus' form 0.0.4, as metrics::Print() makes it.
MetricsAnswer AnswerMetrics(const ServerRequest& request, std::string text);
void ReplyMetrics(const ServerRequest& request, ResponseWriter& writer, std::string text);

}  // namespace keelson::http
