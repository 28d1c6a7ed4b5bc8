#include "controlplane/apiserver/connect/connect_options.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::apiserver {
namespace {

TEST(ConnectOptions, QueryAndObjectSayTheSame) {
  struct {
    const char* row;
    const char* query;
    const char* proxy_path;
    const char* json;
    const char* back;  // the query of the object
  } cases[] = {
      {"pods/exec", "command=ls&command=-l&container=c&stdin=1&stdout=true&tty=no&unknown=x", "",
       R"({"stdin":true,"stdout":true,"container":"c","command":["ls","-l"]})",
       "stdin=true&stdout=true&container=c&command=ls&command=-l"},
      {"pods/exec", "", "", R"({"command":null})", ""},
      {"pods/attach", "stderr=true", "", R"({"stderr":true})", "stderr=true"},
      {"pods/portforward", "ports=80&ports=x&ports=443", "", R"({"ports":[80,443]})", "ports=80&ports=443"},
      {"pods/proxy", "path=/elsewhere", "a/b", R"({"path":"/a/b"})", "path=%2Fa%2Fb"},
      {"services/proxy", "", "", "{}", ""},
  };
  for (const auto& c : cases) {
    RequestInfo info;
    info.proxy_path = c.proxy_path;
    const api::ResourceInfo& row = *api::FindResource("", "v1", c.row);
    const std::unique_ptr<api::Message> options = ConnectOptionsOf(row, http::Query::Parse(c.query), info);
    EXPECT_EQ(api::EncodeJson(*options), c.json) << c.row;
    EXPECT_EQ(QueryOf(*options).ToString(), c.back) << c.row;
  }
}

}  // namespace
}  // namespace keelson::apiserver
