// Objects of custom resources, whole and in JSON: for controllers of kinds that only a CustomResourceDefinition describes.
// lib/api/codec/custom_object.h reads and changes their content. What the caller does not know stays as it was.
//
// A row names the resource, such as one that the program defines:
//
//   const api::ResourceInfo kFoos = CustomRow("example.com", "v1", "foos", "Foo", true);
//   KEELSON_ASSIGN_OR_RETURN(api::custom::CustomObject foo, CustomClient(api).Get(kFoos, "default", "one"));
//
// Errors are those of RestClient; kNotFound also where the resource is not served. Thread safe; copies share the
// transport.
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "lib/api/proto/custom_object.pb.h"
#include "lib/api/scheme.h"
#include "lib/client/rest.h"

namespace keelson::client {

using api::custom::CustomObject;

// The texts have to live as long as the row.
api::ResourceInfo CustomRow(std::string_view group, std::string_view version, std::string_view resource,
                            std::string_view kind, bool namespaced);

class CustomClient {
 public:
  explicit CustomClient(RestClient api) : api_(std::move(api)) {}
  // A copy whose calls end with kCancelled when `stop` is requested.
  CustomClient With(std::stop_token stop) const;

  Result<CustomObject> Get(const api::ResourceInfo& row, std::string_view ns, std::string_view name) const;
  Result<std::vector<CustomObject>> List(const api::ResourceInfo& row, std::string_view ns = "",
                                         const ListOptions& options = {}) const;
  // Both return the object as stored.
  Result<CustomObject> Create(const api::ResourceInfo& row, const CustomObject& object) const;
  Result<CustomObject> Update(const api::ResourceInfo& row, const CustomObject& object,
                              std::string_view subresource = "") const;
  Result<> Delete(const api::ResourceInfo& row, std::string_view ns, std::string_view name,
                  const DeleteOptions& options = {}) const;
  // Reads the object, lets `change` edit it, and writes it; repeats on a conflict, up to 5 times in all. `change` returns
  // false when there is nothing to do.
  Result<CustomObject> UpdateWithRetry(const api::ResourceInfo& row, std::string_view ns,
                                       std::string_view name, std::string_view subresource,
                                       const std::function<Result<bool>(CustomObject&)>& change) const;

 private:
  Result<CustomObject> Send(std::string_view method, const api::ResourceInfo& row, std::string_view ns,
                            std::string_view name, std::string_view subresource,
                            const CustomObject* body) const;

  RestClient api_;
  std::stop_token stop_;
};

}  // namespace keelson::client
