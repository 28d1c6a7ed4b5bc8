#include "lib/http/server/metrics_page.h"

#include "lib/base/media_type.h"
#include "lib/http/gzip.h"
#include "lib/metrics/text.h"

namespace keelson::http {

MetricsAnswer AnswerMetrics(const ServerRequest& request, std::string text) {
  metrics::TextForm form = metrics::NegotiateText(request.headers.Get("Accept"));
  MetricsAnswer out{{{"Content-Type", std::move(form.content_type)}}, std::move(text)};
  if (form.open_metrics) out.body = metrics::ToOpenMetrics(out.body);
  if (!AcceptsGzip(request.headers.Get("Accept-Encoding"))) return out;
  out.headers.Add("Content-Encoding", "gzip");
  out.body = Gzip({std::make_shared<const std::string>(std::move(out.body))});
  return out;
}

void ReplyMetrics(const ServerRequest& request, ResponseWriter& writer, std::string text) {
  MetricsAnswer answer = AnswerMetrics(request, std::move(text));
  writer.Reply(200, std::move(answer.headers), std::move(answer.body));
}

}  // namespace keelson::http
