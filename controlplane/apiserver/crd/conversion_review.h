// ConversionReview (apiextensions.k8s.io v1 and v1beta1): the request to a conversion webhook, and its response.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiextensions/converter.h"

namespace keelson::apiserver {

struct ConversionRequest {
  std::string version;  // v1 or v1beta1
  std::string uid, json;
};

// `objects`: whole objects, as JSON. `desired`: the apiVersion to convert to.
ConversionRequest MakeConversionRequest(std::string_view version, std::string_view desired,
                                        const std::vector<std::string>& objects);

// The converted objects of a response, as JSON. An error has upstream's words and code kInternal.
Result<std::vector<std::string>> ReadConversionResponse(std::string_view json,
                                                        const ConversionRequest& request);

// One converted object, checked against the original, whose metadata it keeps but labels and annotations. kInternal in
// upstream's words, which are to follow "conversion webhook for GVK returned ".
Result<std::unique_ptr<api::Message>> TakeConverted(std::string_view json,
                                                    const apiextensions::Versioned& original,
                                                    const apiextensions::CustomRow& to);

}  // namespace keelson::apiserver
