// The conversion strategy Webhook of CustomResourceDefinitions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/apiextensions/converter.h"
#include "controlplane/apiserver/webhook/hook_client.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

// A call takes 30 s at most. Many objects are sent in several calls, one after the other, so that neither request nor
// response grows without bound.
class WebhookConverter : public apiextensions::Converter {  // thread safe
 public:
  // `store` must outlive the converter.
  WebhookConverter(const storage::Store& store, ServiceResolver::Routing routing)
      : services_(store, routing), client_(services_, "") {}

  Result<std::vector<std::unique_ptr<api::Message>>> Convert(
      const apiextensions::Definition& definition, const apiextensions::CustomRow& to,
      const std::vector<apiextensions::Versioned>& objects, SteadyTime deadline) override;

 private:
  // How a definition says that its objects are converted.
  struct Config {
    int64_t revision = 0;
    webhook::Endpoint endpoint;
    std::string review_version;  // empty: none that this server speaks
  };
  Config ConfigOf(const apiextensions::Definition& definition);
  // One call. `out` gets an object for each of `texts`, which are `objects` as JSON.
  Result<> Call(const Config& config, const apiextensions::CustomRow& to,
                const apiextensions::Versioned* objects, const std::vector<std::string>& texts,
                SteadyTime deadline, std::vector<std::unique_ptr<api::Message>>& out);

  const ServiceResolver services_;
  webhook::HookClient client_;
  Mutex mutex_;
  std::map<std::string, Config> configs_ KEELSON_GUARDED_BY(mutex_);  // by the definition's UID
};

}  // namespace keelson::apiserver
