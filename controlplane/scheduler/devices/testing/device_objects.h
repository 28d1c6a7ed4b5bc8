// For tests: slices, classes and claims from the JSON of their specs.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/resource_v1.pb.h"

namespace keelson::scheduler::testing {

namespace resourcev1 = api::resource::v1;

inline constexpr char kDriver[] = "d.com";

template <typename T>
std::shared_ptr<T> Parse(const std::string& json) {
  auto out = std::make_shared<T>();
  if (const auto read = api::DecodeJson(json, *out); !read) {
    fmt::print(stderr, "{}\n{}\n", json, read.error().message());
    std::abort();
  }
  return out;
}

// The only slice of a pool of the slice's name. `spec`: further fields, such as "nodeName":"n1","devices":[...].
inline std::shared_ptr<resourcev1::ResourceSlice> MakeSlice(const std::string& name,
                                                            const std::string& spec) {
  return Parse<resourcev1::ResourceSlice>(R"({"metadata":{"name":")" + name +
                                          R"("},"spec":{"driver":"d.com",)" + R"("pool":{"name":")" + name +
                                          R"(","generation":1,"resourceSliceCount":1},)" + spec + "}}");
}

// `spec`: "" or fields of the spec.
inline std::shared_ptr<resourcev1::DeviceClass> MakeClass(const std::string& name,
                                                          const std::string& spec = "") {
  return Parse<resourcev1::DeviceClass>(R"({"metadata":{"name":")" + name + R"("},"spec":{)" + spec + "}}");
}

// `devices`: fields of spec.devices.
inline std::shared_ptr<resourcev1::ResourceClaim> MakeClaim(const std::string& name,
                                                            const std::string& devices) {
  return Parse<resourcev1::ResourceClaim>(R"({"metadata":{"name":")" + name +
                                          R"(","namespace":"default","uid":"uid-)" + name +
                                          R"("},"spec":{"devices":{)" + devices + "}}}");
}

// An exact request of class "c". `more`: further fields, with a comma before each.
inline std::string Request(const std::string& name, const std::string& more = "") {
  return R"({"name":")" + name + R"(","exactly":{"deviceClassName":"c")" + more + "}}";
}
inline std::string Requests(const std::string& list) { return "\"requests\":[" + list + "]"; }

}  // namespace keelson::scheduler::testing
