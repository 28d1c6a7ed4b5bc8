#include <boost/json.hpp>

#include "controlplane/apiserver/audit/sink.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;

// Returns the event without its objects and with an annotation; null: impossible.
EventJson WithoutObjects(const std::string& event) {
  boost::system::error_code error;
  json::value parsed = json::parse(event, error);
  if (error || !parsed.is_object()) return nullptr;
  json::object& object = parsed.get_object();
  object.erase("requestObject");
  object.erase("responseObject");
  json::value& notes = object["annotations"];
  if (!notes.is_object()) notes.emplace_object();
  notes.get_object()["audit.k8s.io/truncated"] = "true";
  return std::make_shared<const std::string>(json::serialize(parsed));
}

class TruncateSink : public Sink {
 public:
  TruncateSink(std::string plugin, TruncateOptions options, std::unique_ptr<Sink> inner)
      : plugin_(std::move(plugin)), options_(options), inner_(std::move(inner)) {}

  // Tries all parts of the batch, then returns the error.
  Result<> Write(const std::vector<EventJson>& events) override {
    std::vector<EventJson> batch;
    size_t size = 0;
    Result<> outcome;
    auto flush = [&] {
      if (batch.empty()) return;
      if (Result<> written = inner_->Write(batch); !written) outcome = written;
      batch.clear();
      size = 0;
    };
    for (const EventJson& given : events) {
      EventJson event = given->size() > options_.max_event ? WithoutObjects(*given) : given;
      if (!event || event->size() > options_.max_event) {
        metrics::Counter("apiserver_audit_error_total", "Audit events that were lost, by backend.",
                         {"plugin"})
            .With({plugin_})
            .Increment();
        log::Error("An audit event is too large", {{"plugin", plugin_}, {"bytes", given->size()}});
        continue;
      }
      if (size + event->size() > options_.max_batch) flush();
      size += event->size();
      batch.push_back(std::move(event));
    }
    flush();
    return outcome;
  }
  void Stop() override { inner_->Stop(); }

 private:
  const std::string plugin_;
  const TruncateOptions options_;
  const std::unique_ptr<Sink> inner_;
};

}  // namespace

std::unique_ptr<Sink> NewTruncateSink(std::string plugin, TruncateOptions options,
                                      std::unique_ptr<Sink> inner) {
  return std::make_unique<TruncateSink>(std::move(plugin), options, std::move(inner));
}

}  // namespace keelson::apiserver::audit
