# SPDX-License-Identifier: Apache-2.0
# cmake -D IN=page.css -D OUT=page_css.c -D NAME=kl_page_css -P Embed.cmake: a text file as a C string.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(file ${IN} NAME)
file(WRITE ${OUT} "/* ${file}, by cmake/Embed.cmake */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
