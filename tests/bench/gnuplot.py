# SPDX-License-Identifier: GPL-2.0-only
"""Plots as SVG, by gnuplot.  Both functions return why there is none, or nothing."""
import subprocess


def bars(svg, title, ylabel, names, rows):
    """rows: (label, value of each name ..)"""
    data = svg.with_suffix(".dat")
    data.write_text("\n".join(" ".join(map(str, row)) for row in [["job", *names], *rows]) + "\n")
    return _draw(svg, "1400,600", f'set title "{title}" noenhanced\n'
                 f'set ylabel "{ylabel}"\nset style data histograms\nset style fill solid 0.8\n'
                 'set yrange [0:*]\nset grid ytics\n'
                 'set xtics rotate by 20 right noenhanced\nset key outside noenhanced\n'
                 f'plot for [i=2:{len(names) + 1}] "{data}" '
                 'using i:xtic(1) title columnheader(i)\n')


def lines(svg, series, xlabel, ylabel):
    """series: {name: [(x, y) ..]}; x doubles from step to step."""
    blocks = "\n".join(f"$s{i} << EOD\n" + "".join(f"{x} {y}\n" for x, y in points) + "EOD"
                       for i, points in enumerate(series.values()))
    each = ", ".join(f'$s{i} with linespoints linewidth 2 title "{name}"'
                     for i, name in enumerate(series))
    return _draw(svg, "800,480", f'set xlabel "{xlabel}"\nset ylabel "{ylabel}"\nset logscale x 2\n'
                 'set yrange [0:*]\nset grid ytics\nset key outside noenhanced\n'
                 f'{blocks}\nplot {each}\n')


def _draw(svg, size, script):
    head = f'set terminal svg size {size} background "white"\nset output "{svg}"\n'
    try:
        done = subprocess.run(["gnuplot", "-"], input=head + script, text=True,
                              capture_output=True)
    except FileNotFoundError:
        return "gnuplot is not installed"
    if done.returncode:
        return done.stderr[-300:].strip()
    # in the docs, too, where a line has no white space at its end
    svg.write_text("".join(l.rstrip() + "\n" for l in svg.read_text().splitlines()))
    return ""
