// Serves /metrics like promhttp: Prometheus' text form or OpenMetrics by Accept, gzip by Accept-Encoding.
// Neither form has exemplars.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::http {

struct MetricsAnswer {
  Headers headers;  // Content-Type, Content-Encoding
  std::string body;
};
// `text` is in Prometheus' form 0.0.4, from metrics::Print().
MetricsAnswer AnswerMetrics(const ServerRequest& request, std::string text);
// Replies 200 with AnswerMetrics().
void ReplyMetrics(const ServerRequest& request, ResponseWriter& writer, std::string text);

}  // namespace keelson::http
