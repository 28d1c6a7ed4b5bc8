// /openapi/v2, /openapi/v3 and what hangs below it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controlplane/apiserver/handlers/context.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class OpenApiHandler {  // thread safe
 public:
  // false: the path is none of these.
  bool Handle(Context& context);

 private:
  // Documents are megabytes; they are kept compressed, and made when they are first asked for.
  struct Document {
    std::string gzip, etag, content_type;
  };
  std::shared_ptr<const Document> Find(const std::string& key, std::string_view content_type,
                                       const std::function<std::string()>& make);
  void Reply(Context& context, const Document& document) const;
  void HandleV3(Context& context, std::string_view rest);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Document>> documents_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
