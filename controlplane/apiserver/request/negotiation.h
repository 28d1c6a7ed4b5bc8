// Content negotiation: which form a reply takes, which form a body has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/media_type.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

enum class Encoding { kJson, kYaml, kProtobuf };
enum class As { kObject, kTable, kPartialMetadata, kPartialMetadataList };

struct Output {
  Encoding encoding = Encoding::kJson;
  As as = As::kObject;
  std::string version = "v1";  // of meta.k8s.io, for tables and partial metadata
  bool pretty = false;
  bool gzip = false;

  std::string ContentType() const;
};

// What an endpoint can answer with.
enum class Forms {
  kPlain,    // objects as they are: errors, discovery
  kNoTable,  // also partial metadata: what is created and never stored
  kAll,      // also tables
  kList,     // the same of many objects
  kWatch,    // the same as a stream, for which YAML has no form
};

// JSON, with what does not depend on the Accept header: pretty and gzip.
Output PlainOutput(const http::ServerRequest& request);
// kNotAcceptable when the client wants nothing that is there.
Result<Output> NegotiateOutput(const http::ServerRequest& request, Forms forms);

// Of a body. kUnsupportedMediaType for anything else; none is JSON.
Result<Encoding> BodyEncoding(const http::ServerRequest& request);

// The values of Warning headers (RFC 7234): 299 - "text", each text once. Clients are spared long ones: above
// 4096 characters in all, each is cut at 256 and what is still too much is left out. Texts that no header may
// hold (control characters, bytes that are not UTF-8) are dropped.
std::vector<std::string> WarningHeaders(const std::vector<std::string>& texts);

}  // namespace keelson::apiserver
