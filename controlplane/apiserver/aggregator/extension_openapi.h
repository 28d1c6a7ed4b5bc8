// What extension API servers add to the OpenAPI document of version 2, merged when a request needs it and kept until one
// of their documents changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/aggregator/extension_documents.h"
#include "lib/base/mutex.h"
#include "lib/http/gzip_pieces.h"

namespace keelson::apiserver {

class ExtensionOpenApi {  // thread safe
 public:
  struct Merged {
    std::string identity;            // another one whenever the contents are
    http::GzipPiece paths, schemas;  // members of JSON objects
    http::GzipPiece protobuf;        // all of it
  };

  // `documents` must outlive this.
  explicit ExtensionOpenApi(const ExtensionDocuments& documents) : documents_(documents) {}

  // Null: no server that answers has such a document.
  std::shared_ptr<const Merged> Current();

 private:
  using Parts = std::vector<std::shared_ptr<const std::string>>;

  const ExtensionDocuments& documents_;
  Mutex mutex_;
  Parts parts_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<const Merged> merged_ KEELSON_GUARDED_BY(mutex_);  // of parts_
};

}  // namespace keelson::apiserver
