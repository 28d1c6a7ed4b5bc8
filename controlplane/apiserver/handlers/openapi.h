// /openapi/v2, /openapi/v3 and the documents below it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/handlers/custom_openapi.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "lib/api/openapi/openapi.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/gzip_pieces.h"

namespace keelson::apiserver {

// Documents have several megabytes. They are created on first use, cached compressed, and dropped when idle.
// Their hashes, which the index of version 3 needs, stay. The parts of custom resources join them at each request.
class OpenApiHandler {  // thread safe
 public:
  explicit OpenApiHandler(Clock& clock = Clock::Real(), ApiEnablement enablement = {},
                          CustomOpenApi::Definitions definitions = {})
      : clock_(clock),
        served_([enablement = std::move(enablement)](const api::ResourceInfo& info) {
          return enablement.Serves(info);
        }),
        custom_(std::move(definitions), clock) {}

  // Further entries of the index of version 3, whose documents another server has: members of a JSON object, such as
  // "apis/G/V":{"serverRelativeURL":"..."}, or empty. Call it before the first request. `entries` is thread safe.
  void SetFurtherEntries(std::function<std::string()> entries) { further_entries_ = std::move(entries); }

  // What further servers add to the document of version 2; a fragment of null: nothing. `identity` is another one
  // whenever the fragment is. Call it before the first request. `further` is thread safe.
  struct FurtherV2 {
    std::string identity;
    std::shared_ptr<const CustomFragment> fragment;
  };
  void SetFurtherV2(std::function<FurtherV2(OpenApiForm)> further) { further_v2_ = std::move(further); }

  // Returns false for other paths.
  bool Handle(Context& context);
  // Drops documents that were not requested recently.
  void DropIdle();
  // The number of cached documents, without parts of custom resources.
  size_t kept() const;

 private:
  using Parts = std::span<const CustomOpenApi::Part>;
  using Published = std::shared_ptr<const CustomOpenApi::Published>;

  // Between the pieces stand the paths and the schemas of custom resources.
  struct Document {
    http::GzipPiece head, middle, tail;
    bool has_paths = true;
    std::string hash;  // of the contents
  };
  using DocumentPtr = std::shared_ptr<const Document>;
  struct Kept {
    DocumentPtr document;
    std::string of;  // what it was made of
    SteadyTime used;
  };

  // The kept document if it was made of `of`.
  DocumentPtr Find(const std::string& key, const std::string& of,
                   const std::function<api::OpenApiParts()>& make);
  // Replies 304 when the client has the document.
  bool ReplyUnchanged(Context& context, const std::string& hash, http::Headers& headers) const;
  // `further`: after the parts; may be null.
  void Reply(Context& context, const Document& document, Parts parts,
             std::shared_ptr<const CustomFragment> further, OpenApiForm form, http::Headers headers) const;
  void HandleV2(Context& context);
  void HandleIndex(Context& context);
  void HandleV3(Context& context, const std::string& path);
  DocumentPtr FindV2(OpenApiForm form);
  DocumentPtr FindV3(const std::string& path, bool built_in, Parts parts, OpenApiForm form);
  std::string HashV2(OpenApiForm form, const Published& published, const FurtherV2& further);
  // Of a built-in document.
  std::string BuiltInHash(const std::string& path);
  std::string HashV3(const std::string& path, bool built_in, Parts parts);

  Clock& clock_;
  const api::OpenApiFilter served_;
  CustomOpenApi custom_;
  std::function<std::string()> further_entries_;
  std::function<FurtherV2(OpenApiForm)> further_v2_;
  mutable Mutex mutex_;
  std::map<std::string, Kept> documents_ KEELSON_GUARDED_BY(mutex_);
  // Of built-in documents: those of version 3 by path, those of version 2 by form.
  std::map<std::string, std::string> hashes_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
