#include "kubelet/staticpod/go_print.h"

#include <gtest/gtest.h>

#include "kubelet/staticpod/go_quantity.h"

namespace keelson::kubelet {
namespace {

namespace json = boost::json;

TEST(GoPrint, LooksAsInGo) {
  const GoTypes types(
      "a.Outer: Name string, TTY bool =tty, Count *int32, List []string, Map map[string]string, Part a.Part, "
      "Parts []*a.Part, Near a.Near =., Never string =-, Port intstr.IntOrString, At v1.Time\n"
      "a.Part: Size int64\n"
      "a.Near: Other a.Kind\n");
  const struct {
    const char *value, *printed;
  } cases[] = {
      {"{}",
       "(*a.Outer){Name:(string) TTY:(bool)false Count:(*int32)<nil> List:([]string)<nil> "
       "Map:(map[string]string)<nil> Part:(a.Part){Size:(int64)0} Parts:([]*a.Part)<nil> "
       "Near:(a.Near){Other:(a.Kind)} Never:(string) "
       "Port:(intstr.IntOrString){Type:(intstr.Type)0 IntVal:(int32)0 StrVal:(string)} "
       "At:(v1.Time){Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}}"},
      {R"({"name":"x y","tty":true,"count":3,"list":["a","b"],"map":{"z":"1","b":"2"},"part":{"size":5},
           "other":"k","never":"not","port":"http","at":null})",
       "(*a.Outer){Name:(string)x y TTY:(bool)true Count:(*int32)3 List:([]string)[a b] "
       "Map:(map[string]string)map[b:2 z:1] Part:(a.Part){Size:(int64)5} Parts:([]*a.Part)<nil> "
       "Near:(a.Near){Other:(a.Kind)k} Never:(string) "
       "Port:(intstr.IntOrString){Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string)http} "
       "At:(v1.Time){Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}}"},
  };
  for (const auto& c : cases) EXPECT_EQ(GoPrint(types, "*a.Outer", json::parse(c.value)), c.printed);
  for (const char* unknown : {R"({"other":{"of":"another type"}})", R"({"at":"2026-01-01T00:00:00Z"})",
                              R"({"count":"3"})", R"({"list":{}})"}) {
    EXPECT_EQ(GoPrint(types, "*a.Outer", json::parse(unknown)), std::nullopt) << unknown;
  }
}

TEST(GoPrint, Quantities) {
  const struct {
    const char *text, *amount, *format;
  } cases[] = {{"100m", "value:(int64)100 scale:(resource.Scale)-3", "DecimalSI"},
               {"2", "value:(int64)2 scale:(resource.Scale)0", "DecimalSI"},
               {"0.5", "value:(int64)5 scale:(resource.Scale)-1", "DecimalSI"},
               {"3k", "value:(int64)3 scale:(resource.Scale)3", "DecimalSI"},
               {"100Mi", "value:(int64)104857600 scale:(resource.Scale)0", "BinarySI"},
               {"0", "value:(int64)0 scale:(resource.Scale)0", ""}};
  for (const auto& c : cases) {
    EXPECT_EQ(PrintGoQuantity(c.text), std::string("{i:(resource.int64Amount){") + c.amount +
                                           "} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)" +
                                           c.text + " Format:(resource.Format)" + c.format + "}");
  }
  for (const char* text : {"", "x", "1.5Gi", "100u", "1234567890123456789", "99999Ti", "-1", "1Q"}) {
    EXPECT_EQ(PrintGoQuantity(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace keelson::kubelet
