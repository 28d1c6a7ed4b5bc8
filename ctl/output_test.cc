#include "ctl/output.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace keelson::ctl {
namespace {

const boost::json::value kDocument = {{"name", "default/web"},
                                      {"count", 2},
                                      {"empty", boost::json::array{}},
                                      {"ready", true},
                                      {"number", "10"},
                                      {"word", "no"},
                                      {"ip", "fd00::1"},
                                      {"text", "a: b # c"},
                                      {"nothing", ""},
                                      {"list", {{{"where", "ip x"}, {"what", "drop"}}, {{"where", "-"}}}}};

TEST(Output, Json) {
  std::string text = ToJson(kDocument);
  EXPECT_EQ(boost::json::parse(text), kDocument);
  EXPECT_EQ(text.substr(0, 50), "{\n    \"name\": \"default/web\",\n    \"count\": 2,\n    \"");
  EXPECT_NE(text.find("\"empty\": [],"), std::string::npos);
}

TEST(Output, Yaml) {
  EXPECT_EQ(ToYaml(kDocument),
            "name: default/web\n"
            "count: 2\n"
            "empty: []\n"
            "ready: true\n"
            "number: \"10\"\n"
            "word: \"no\"\n"
            "ip: fd00::1\n"
            "text: \"a: b # c\"\n"
            "nothing: \"\"\n"
            "list:\n"
            "  - where: ip x\n"
            "    what: drop\n"
            "  - where: \"-\"\n");
}

TEST(Output, Table) {
  EXPECT_EQ(TextTable({{"NAME", "VIA"}, {"a-long-name", "x"}, {"b", ""}}, 2),
            "  NAME          VIA\n"
            "  a-long-name   x\n"
            "  b\n");
}

}  // namespace
}  // namespace keelson::ctl
