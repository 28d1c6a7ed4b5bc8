// For tests: one request to one plugin.
#pragma once

#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/codec/codec.h"

namespace keelson::apiserver {

template <typename T>
T ParseAs(std::string_view text) {
  T object;
  Result<> parsed = api::DecodeJson(text, object);
  EXPECT_TRUE(parsed) << text;
  return object;
}

// One request. Try() returns the plugin's error message, "" when it admits.
template <typename T>
struct Case {
  explicit Case(std::string_view json, std::string_view ns = "default") : object(ParseAs<T>(json)), ns_(ns) {}
  Case& Was(std::string_view json) {
    old = ParseAs<T>(json);
    updates = true;
    return *this;
  }
  std::string Try(AdmissionPlugin& plugin, const User& user = {"u", "", {}, {}}, std::string_view row = "") {
    const api::ResourceInfo& main = api::ResourceOf<T>();
    const api::ResourceInfo& info = row.empty() ? main : *api::FindResource(main.group, main.version, row);
    const AdmissionRequest request{updates ? registry::Operation::kUpdate : registry::Operation::kCreate,
                                   info,
                                   ns_,
                                   updates ? std::string_view(object.metadata().name()) : "",
                                   &object,
                                   updates ? &old : nullptr,
                                   user,
                                   false,
                                   &notes,
                                   updates ? "update" : "create"};
    Result<> result = plugin.Mutate(request);
    if (result) result = plugin.Validate(request);
    if (!result) {
      code = result.error().code();
      const ErrorDetails* details = result.error().details();
      if (details && !details->causes.empty()) cause = details->causes[0].reason;
    }
    return result ? "" : result.error().message();
  }
  T object, old;
  bool updates = false;
  AdmissionNotes notes;
  Code code = Code::kInternal;
  std::string cause;  // the first cause in the error
  std::string_view ns_;
};
using PodCase = Case<corev1::Pod>;

}  // namespace keelson::apiserver
